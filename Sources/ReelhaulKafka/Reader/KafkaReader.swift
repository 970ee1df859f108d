/// Reads all partitions of topics without a group: nothing is committed, and every reader sees every record.
///
/// If a reader falls behind until the log drops unread records, it continues with the earliest record, and reports the
/// gap to its observer.
package final class KafkaReader: Sendable {
  package enum Start: Sendable {
    /// Only records written after the reader was opened.
    case end
    case beginning
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
  package static func open(
    _ configuration: KafkaConfiguration, topics: [String], expecting expected: [String] = [], from start: Start,
    records: Int = 2000, bytes: Int = 1 << 20, timeout: Duration = .seconds(10)
  ) async throws(KafkaError) -> KafkaReader {
    let handle = try KafkaHandle(
      .reader, configuration,
      defaults: KafkaHandle.fetching,
      required: [
        "enable.auto.commit": "false", "enable.auto.offset.store": "false", "enable.partition.eof": "false",
      ])
    let worker = ReaderThread(
      handle, topics: topics, expected: topics + expected, start: start, records: records, bytes: bytes,
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
    try await worker.batches.next { [worker] in worker.wake() }
  }

  package func close() async {
    worker.stop()
    await thread.ended()
  }
}
