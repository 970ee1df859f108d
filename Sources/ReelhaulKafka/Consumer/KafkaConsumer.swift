import ReelhaulSystem
import Synchronization

/// A member of a consumer group: hands over batches of records, and commits them with ``commit(_:)``.
///
/// Delivery is at least once. A record of a batch that was not committed comes again, here or at another member, so
/// what is done with it must be idempotent. Rebalances are cooperative: partitions that stay are not disturbed.
package final class KafkaConsumer: Sendable {
  package struct Options: Sendable {
    /// The most records of a batch.
    package var records: Int
    /// The most bytes of a batch, give or take one record.
    package var bytes: Int
    /// How long the group waits at a rebalance for handed-out records of a leaving partition to be committed.
    package var revocationGrace: Duration
    /// How long a full buffer may keep the thread from polling before the partitions are paused.
    package var patience: Duration

    package init(
      records: Int = 2000, bytes: Int = 1 << 20, revocationGrace: Duration = .seconds(2),
      patience: Duration = .milliseconds(500)
    ) {
      self.records = records
      self.bytes = bytes
      self.revocationGrace = revocationGrace
      self.patience = patience
    }
  }

  private let worker: ConsumerThread
  private let thread: PollThread

  /// Joins the group soon, without waiting, unless `isMember` is false.
  package init(
    _ configuration: KafkaConfiguration, group: String, topics: [String], options: Options = Options(),
    isMember: Bool = true
  ) throws(KafkaError) {
    let handle = try KafkaHandle(
      .member, configuration,
      defaults: KafkaHandle.fetching.merging([
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "2000",
        "topic.metadata.refresh.interval.ms": "30000",
        "queued.min.messages": "20000",
        // With a backlog the queue is full again and again, and whenever there is room, librdkafka begins anew with the
        // first partition. So one answer has room for a part of each of 50 partitions: none waits until those before it
        // are read. A batch of records that is larger than its part comes only at its partition's turn.
        "fetch.max.bytes": "1048576",
        "fetch.message.max.bytes": "20480",
      ]) { $1 },
      required: [
        "group.id": group,
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "enable.partition.eof": "true",
        "partition.assignment.strategy": "cooperative-sticky",
      ])
    let worker = ConsumerThread(handle, topics: topics, options: options)
    if isMember { worker.add(.join) }
    self.worker = worker
    thread = PollThread(name: "kafka-consumer") { worker.run() }
  }

  deinit {
    worker.stop(by: .now)
  }

  /// Waits for records; `nil` once the consumer is closed. One task at a time.
  ///
  /// Throws a ``KafkaError`` that is fatal, or `CancellationError`; after the latter nothing is lost.
  package func next() async throws -> KafkaBatch? {
    try await worker.batches.next { [worker] in worker.wake() }
  }

  /// Notes that the batch with these ranges is done. Its offsets are committed soon, and before ``close(within:)``
  /// returns; while a member joins the group, this takes until it has joined. Records of partitions that have left this
  /// member come again at their new owner.
  package func commit(_ ranges: [KafkaBatch.Range]) {
    worker.add(.commit(ranges))
  }

  /// Joins the group soon, unless it is a member already.
  package func join() {
    worker.add(.join)
  }

  /// Leaves the group soon; the consumer can ``join()`` again. Records that are not committed come again at their new
  /// owners.
  package func leave() {
    worker.add(.leave)
  }

  /// Reads exactly these partitions soon, from the group's committed offsets, without being a member of the group. For
  /// consumers that never ``join()``. Others may read the same partitions: both get their records then.
  package func take(_ partitions: [TopicPartition]) {
    worker.add(.take(partitions))
  }

  /// Fetches no more records, also from partitions that are assigned later. The member stays in its group. Records that
  /// were fetched before may still be handed over.
  package func pause() {
    worker.add(.pause)
  }

  /// Ends the effect of ``pause()``.
  package func resume() {
    worker.add(.resume)
  }

  /// The partitions this member has now.
  package var assignment: [TopicPartition] {
    worker.assignment.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
  }

  /// Records that are known to be in this member's partitions and are not done; about a second old.
  package var lag: Int { worker.lag.load(ordering: .relaxed) }

  /// Leaves the group, in `timeout` or a little more. The client is freed when no question to the group is under way.
  /// ``next()`` returns `nil` from now on. Commit all batches that are done before closing.
  package func close(within timeout: Duration = .seconds(5)) async {
    worker.stop(by: BootInstant.now + timeout)
    await thread.ended()
  }
}
