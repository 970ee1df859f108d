import CReelhaulKafka
import Glibc
import ReelhaulSystem

struct GroupQuestion: Sendable {
  /// The partitions to ask the group about.
  var partitions: [TopicPartition]
  /// The partitions for which the group may have no offset. The beginning of their logs is looked up.
  var unknown: Set<TopicPartition> = []
  /// The partitions for which both ends of the log are looked up.
  var searched: [TopicPartition] = []
}

enum GroupAnswer: Sendable {
  case offsets(Offsets)
  case failure(rd_kafka_resp_err_t)

  struct Offsets: Sendable {
    var committed: [TopicPartition: Int64] = [:]
    /// The partitions for which the group has no offset.
    var absent: Set<TopicPartition> = []
    /// The requested beginnings and ends of logs that could be found out.
    var starts: [TopicPartition: Int64] = [:]
    var ends: [TopicPartition: Int64] = [:]

    /// The offsets of the group behind which records were dropped unread.
    var gone: [TopicPartition: Int64] { committed.filter { $0.value < starts[$0.key] ?? 0 } }
    /// The partitions without an offset whose first records are gone.
    var begun: [TopicPartition] { Array(absent.filter { starts[$0] ?? 0 > 0 }) }
  }
}

/// Asks a group for its offsets, and the leaders of partitions for the offsets of their logs, on its own thread:
/// librdkafka's calls block, and while a coordinator waits for members to join, it answers nothing else.
///
/// Do not use `ListConsumerGroupOffsets`, the asynchronous call of librdkafka 2.0: it never drops a coordinator that
/// has moved.
final class GroupInquirer: Sendable {
  /// In milliseconds. Only a commit or new partitions wait for the answer, and nothing waits for a commit.
  private static let patience: Int32 = 30_000
  private static let leaderPatience: Int32 = 3000
  /// What a coordinator says that moves to another broker.
  private static let movements: Set<KafkaError.Code> = Set(
    [
      RD_KAFKA_RESP_ERR_NOT_COORDINATOR, RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
      RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
    ].map { KafkaError.Code($0) })

  private let handle: KafkaHandle
  private let pool = BlockingPool(name: "kafka-group", threads: 1)

  init(_ handle: KafkaHandle) {
    self.handle = handle
  }

  func ask(_ question: GroupQuestion, then answer: @escaping @Sendable (GroupAnswer) -> Void) {
    let isAsked = pool.submit { [self] in answer(look(question)) }
    // There is no thread for it.
    if !isAsked { answer(.failure(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE)) }
  }

  private func look(_ question: GroupQuestion) -> GroupAnswer {
    let list = PartitionList(question.partitions)
    let end = BootInstant.now + .milliseconds(Int(Self.patience))
    var code = RD_KAFKA_RESP_ERR_NO_ERROR
    repeat {
      code = list.lend { rd_kafka_committed(handle.raw, $0, max(1, end.millisecondsLeft)) }
      guard Self.movements.contains(KafkaError.Code(code)) else { break }
      // A coordinator that has moved answers at once, and librdkafka learns of the new one meanwhile.
      usleep(200_000)
    } while !end.hasPassed
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return .failure(code) }
    return .offsets(
      .init(
        committed: list.offsets, absent: Set(list.absent),
        starts: ends(.first, of: Array(question.unknown.union(question.searched))),
        ends: ends(.last, of: question.searched)))
  }

  private func ends(_ end: KafkaHandle.LogEnd, of partitions: [TopicPartition]) -> [TopicPartition: Int64] {
    (try? handle.offsets(of: partitions, at: end, milliseconds: Self.leaderPatience)) ?? [:]
  }

  /// Blocks until the last question has been answered.
  func shutdown() { pool.shutdown() }

  func abandon() { pool.abandon() }
}
