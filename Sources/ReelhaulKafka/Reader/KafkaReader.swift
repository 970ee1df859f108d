import CReelhaulKafka
import ReelhaulSystem

/// Reads all partitions of topics without a group: nothing is committed, and every reader sees every record.
///
/// If a reader falls behind until the log drops unread records, it continues with the earliest record, and reports the
/// gap to its observer.
package final class KafkaReader: Sendable {
  package enum Start: Sendable {
    /// Only records written after the reader was opened.
    case end
    case beginning
    /// So many records before the end of each partition, or fewer if it has not so many.
    case last(Int64)
    /// These partitions from these offsets, and others from the beginning. An offset that is not in the log is a gap:
    /// the observer is told, and the partition is read from its beginning.
    case offsets([TopicPartition: Int64])
    /// From the first record of this time or later, in milliseconds since 1970. A partition with at most `whole`
    /// records is read from its beginning.
    case time(Int64, whole: Int64)
  }

  /// Where a partition is read from, and where its log ended at that moment.
  package struct Beginning: Hashable, Sendable {
    package var first: Int64
    package var end: Int64
  }

  private let worker: ReaderThread
  private let thread: PollThread

  private init(worker: ReaderThread, thread: PollThread) {
    self.worker = worker
    self.thread = thread
  }

  /// Finds the partitions and the starting offset of each. Every record written after this returns is read. Partitions
  /// and topics that appear later are noticed within seconds and read from their beginning. The observer is told if
  /// these topics, or other `expected` topics, are missing.
  ///
  /// Throws if the cluster does not answer within `timeout`.
  ///
  /// - Parameters:
  ///   - only: reads no other partitions than these, and none that appear later.
  ///   - tellsEnds: whether ``read()`` returns also where a partition was read to its end.
  package static func open(
    _ configuration: KafkaConfiguration, topics: [String], only: Set<TopicPartition>? = nil,
    expecting expected: [String] = [], from start: Start, tellsEnds: Bool = false, records: Int = 2000,
    bytes: Int = 1 << 20,
    timeout: Duration = .seconds(10)
  ) async throws(KafkaError) -> KafkaReader {
    let handle = try KafkaHandle(
      .reader, configuration,
      defaults: KafkaHandle.fetching,
      required: [
        "enable.auto.commit": "false", "enable.auto.offset.store": "false",
        "enable.partition.eof": tellsEnds ? "true" : "false",
      ])
    let worker = ReaderThread(
      handle, topics: topics, only: only, expected: topics + expected, start: start, records: records, bytes: bytes,
      timeout: timeout)
    let result: Result<PollThread, KafkaError> = await worker.open()
    return KafkaReader(worker: worker, thread: try result.get())
  }

  deinit {
    worker.stop()
  }

  /// Waits for records, in order within each partition; nil once the reader is closed. Only one task may call it at a
  /// time.
  package func next() async throws -> [KafkaRecord]? {
    while let reading = try await read() {
      if !reading.records.isEmpty { return reading.records }
    }
    return nil
  }

  /// The same, with the ends of partitions.
  package func read() async throws -> Reading? {
    try await worker.batches.next { [worker] in worker.wake() }
  }

  package struct Reading: Sendable {
    package internal(set) var records: [KafkaRecord] = []
    /// The partitions that were read to their end, with the offset behind it. It may lie behind the last record: a
    /// transaction ends with a mark.
    package internal(set) var ends: [TopicPartition: Int64] = [:]

    var isEmpty: Bool { records.isEmpty && ends.isEmpty }
  }

  /// The partitions that are read, and where each began.
  package var beginnings: [TopicPartition: Beginning] { worker.beginnings.withLock { $0 } }

  /// How many partitions a topic has, by the last look; 0 if there is no such topic.
  package func partitionCount(of topic: String) -> Int { worker.partitionCounts.withLock { $0[topic] ?? 0 } }

  /// The partition of `count` that has the records with this key, whatever client of this fleet or of Java wrote them;
  /// nil if there are none.
  package static func partition(of key: [UInt8], count: Int) -> Int32? {
    guard count > 0 else { return nil }
    return rd_kafka_msg_partitioner_murmur2(nil, key, key.count, Int32(clamping: count), nil, nil)
  }

  package func close() async {
    worker.stop()
    await thread.ended()
  }
}
