import ReelhaulKafka

/// The source of commands: a member of the consumer group, or a test's list.
package protocol CommandSource: Sendable {
  /// Waits for records; `nil` once the source is closed.
  func next() async throws -> CommandBatch?
  /// Joins the group, or stays in it. From now on a share of the commands comes here.
  func join()
  /// Leaves the group. Other members get the share, including its uncommitted commands.
  func leave()
  /// Stops fetching for now, but stays in the group.
  func pause()
  func resume()
}

/// Records that are applied to the store together.
package struct CommandBatch: Sendable {
  package let records: [KafkaRecord]
  /// Tells the source that the records are not needed again. Does not wait.
  package let commit: @Sendable () -> Void

  package init(records: [KafkaRecord], commit: @escaping @Sendable () -> Void) {
    self.records = records
    self.commit = commit
  }
}

/// The consumer group as the source of commands. The consumer becomes a member with ``join()``.
package struct KafkaCommandSource: CommandSource {
  private let consumer: KafkaConsumer

  package init(_ consumer: KafkaConsumer) {
    self.consumer = consumer
  }

  package func next() async throws -> CommandBatch? {
    guard let batch = try await consumer.next() else { return nil }
    return CommandBatch(records: batch.records) { [consumer, ranges = batch.ranges] in consumer.commit(ranges) }
  }

  package func join() { consumer.join() }

  package func leave() { consumer.leave() }

  package func pause() { consumer.pause() }

  package func resume() { consumer.resume() }
}
