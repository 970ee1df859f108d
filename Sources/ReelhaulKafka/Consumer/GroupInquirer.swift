import CReelhaulKafka
import ReelhaulSystem

struct GroupQuestion: Sendable {
  /// What the group is asked about.
  var partitions: [TopicPartition]
  /// Those of which it may have no offset: where their logs begin is looked for.
  var unknown: Set<TopicPartition> = []
  /// Those of which both ends of the log are looked for.
  var searched: [TopicPartition] = []
}

enum GroupAnswer: Sendable {
  case offsets(Offsets)
  case failure(rd_kafka_resp_err_t)

  struct Offsets: Sendable {
    var committed: [TopicPartition: Int64] = [:]
    /// Those that the group has no offset of.
    var absent: [TopicPartition] = []
    /// Where logs begin, and where they end, as far as it was asked for and could be found out.
    var starts: [TopicPartition: Int64] = [:]
    var ends: [TopicPartition: Int64] = [:]
  }
}

/// Asks a group for its offsets, and leaders for those of their logs, on a thread of its own: librdkafka's calls block, and
/// a coordinator that waits for members to join answers nothing else meanwhile.
///
/// The asynchronous call of librdkafka 2.0 (`ListConsumerGroupOffsets`) is none to use: it never forgets a coordinator
/// that has moved.
final class GroupInquirer: Sendable {
  /// Milliseconds. What waits for an answer is a commit, which nothing waits for, or a new share.
  private static let patience: Int32 = 30_000
  private static let leaderPatience: Int32 = 3000

  private let handle: KafkaHandle
  private let pool = BlockingPool(name: "kafka-group", threads: 1)

  init(_ handle: KafkaHandle) {
    self.handle = handle
  }

  func ask(_ question: GroupQuestion, then answer: @escaping @Sendable (GroupAnswer) -> Void) {
    pool.submit { [self] in answer(look(question)) }
  }

  private func look(_ question: GroupQuestion) -> GroupAnswer {
    let list = PartitionList(question.partitions)
    let code = list.lend { rd_kafka_committed(handle.raw, $0, Self.patience) }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return .failure(code) }
    return .offsets(
      .init(
        committed: list.offsets, absent: list.absent,
        starts: ends(.first, of: Array(question.unknown.union(question.searched))),
        ends: ends(.last, of: question.searched)))
  }

  private func ends(_ end: KafkaHandle.LogEnd, of partitions: [TopicPartition]) -> [TopicPartition: Int64] {
    (try? handle.offsets(of: partitions, at: end, milliseconds: Self.leaderPatience)) ?? [:]
  }

  /// Blocks until the last question is answered.
  func shutdown() { pool.shutdown() }

  func abandon() { pool.abandon() }
}
