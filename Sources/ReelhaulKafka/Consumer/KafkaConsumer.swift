/// A member of a consumer group. It delivers batches of records, and commits them when told to.
///
/// Delivery is at least once. A record that was not committed comes again, here or at another member, so its effect
/// must be idempotent. Rebalances are cooperative: partitions that stay are not disturbed.
package final class KafkaConsumer: Sendable {
  package struct Options: Sendable {
    /// The most records in a batch.
    package var records: Int
    /// The most bytes in a batch, except that the last record may exceed it.
    package var bytes: Int
    /// How long a rebalance waits until handed-out records of a leaving partition are committed.
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

  /// Joins the group soon, unless `isMember` is false. Does not wait.
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
    worker.stop(by: .now())
  }

  /// Waits for records; nil once the consumer is closed. Only one task may call it at a time.
  ///
  /// Throws a fatal ``KafkaError``, or `CancellationError`. Cancellation loses no records.
  package func next() async throws -> KafkaBatch? {
    try await worker.batches.next { [worker] in worker.wake() }
  }

  /// Marks the records up to these ranges as done. Their offsets are committed soon, and before ``close(within:)``
  /// returns. While a member joins the group, this takes as long as the joining. Records of partitions that have left
  /// come again at their new owner.
  package func commit(_ ranges: [KafkaBatch.Range]) {
    worker.add(.commit(ranges))
  }

  /// Joins the group soon if it is not a member yet.
  package func join() {
    worker.add(.join)
  }

  /// Leaves the group soon. The consumer can ``join()`` again. Records that are not committed come again at their new
  /// owners.
  package func leave() {
    worker.add(.leave)
  }

  /// Stops fetching records, also of partitions that come later. The member stays in its group. Records fetched before
  /// may still be delivered.
  package func pause() {
    worker.add(.pause)
  }

  /// Ends ``pause()``.
  package func resume() {
    worker.add(.resume)
  }

  /// The partitions this member has now.
  package var assignment: [TopicPartition] {
    worker.assignment.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
  }

  /// Leaves the group within about `timeout`. The client is freed once no question is under way. ``next()`` returns
  /// nil from now on. Commit finished records before closing.
  package func close(within timeout: Duration = .seconds(5)) async {
    worker.stop(by: .after(timeout))
    await thread.ended()
  }
}
