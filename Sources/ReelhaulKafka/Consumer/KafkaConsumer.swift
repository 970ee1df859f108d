import ReelhaulSystem

/// A member of a consumer group: hands over batches of records, and commits them when told so.
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

  /// Joins the group soon, unless `isMember` is false; does not wait for it.
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
      ]) { $1 },
      required: [
        "group.id": group,
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "enable.partition.eof": "false",
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

  /// The batch that reads as far as this is done: its offsets are committed soon, and before ``close(within:)`` returns.
  /// While a member joins that takes as long as its joining. What is no longer this member's comes again at its owner.
  package func commit(_ ranges: [KafkaBatch.Range]) {
    worker.add(.commit(ranges))
  }

  /// Joins the group soon, where it is no member yet.
  package func join() {
    worker.add(.join)
  }

  /// Leaves the group soon; the consumer can ``join()`` again. Records that are not committed come again at their new
  /// owners.
  package func leave() {
    worker.add(.leave)
  }

  /// Fetches no more records, of partitions to come neither. The member stays in its group. What was fetched before
  /// may still be handed over.
  package func pause() {
    worker.add(.pause)
  }

  /// Takes back ``pause()``.
  package func resume() {
    worker.add(.resume)
  }

  /// The partitions this member has now.
  package var assignment: [TopicPartition] {
    worker.assignment.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
  }

  /// Leaves the group, in `timeout` and a little; the client is freed once no question is under way. ``next()`` returns
  /// `nil` from now on; commit before closing what is done.
  package func close(within timeout: Duration = .seconds(5)) async {
    worker.stop(by: BootInstant.now + timeout)
    await thread.ended()
  }
}
