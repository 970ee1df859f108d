import CRdKafka
import System

/// What a group has committed of the partitions that it was asked about.
enum GroupAnswer: Sendable {
  case offsets([TopicPartition: Int64], absent: [TopicPartition])
  case failure(rd_kafka_resp_err_t)
}

/// Asks a group for its offsets, on a thread of its own: librdkafka's call blocks, and a coordinator that waits for members
/// to join answers nothing else meanwhile.
final class GroupInquirer: Sendable {
  /// Milliseconds. What waits for an answer is a commit; ingest is not.
  private static let patience: Int32 = 30_000

  private let handle: KafkaHandle
  private let pool = BlockingPool(name: "kafka-group", threads: 1)

  init(_ handle: KafkaHandle) {
    self.handle = handle
  }

  func ask(about partitions: [TopicPartition], then answer: @escaping @Sendable (GroupAnswer) -> Void) {
    pool.submit { [handle] in
      let list = PartitionList(partitions)
      let code = list.lend { rd_kafka_committed(handle.raw, $0, Self.patience) }
      answer(
        code == RD_KAFKA_RESP_ERR_NO_ERROR ? .offsets(list.offsets, absent: list.absent) : .failure(code))
    }
  }

  /// Blocks until the last question is answered.
  func shutdown() { pool.shutdown() }

  func abandon() { pool.abandon() }
}
