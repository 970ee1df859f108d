import ReelhaulKafka
import ReelhaulMessages
import TaskCore
import TaskStore

/// The source of commands: a member of the consumer group, or a test's list.
package protocol CommandSource: Sendable {
  /// Waits for records; `nil` once the source is closed.
  func next() async throws -> CommandBatch?
  /// Joins the group, or stays in it. From now on a share of the commands comes here. `worker` has begun its lease.
  func join(as worker: WorkerID)
  /// `worker` has renewed its lease.
  func renewed(_ worker: WorkerID) async
  /// Leaves the group. Other members get the share, including its uncommitted commands.
  func leave()
  /// Stops fetching for now, but stays in the group.
  func pause()
  func resume()
  /// Records that are known to be in the share and are not committed, about a second old.
  var lag: Int { get }
}

extension CommandSource {
  package func renewed(_ worker: WorkerID) async {}

  package var lag: Int { 0 }
}

/// A record of the `commands` topic, as it came.
package struct CommandRecord: Sendable {
  package var origin: MessageOrigin
  package var key: [UInt8]?
  package var value: [UInt8]?
  package var headers: [(String, [UInt8])]

  package init(
    origin: MessageOrigin, key: [UInt8]? = nil, value: [UInt8]?, headers: [(String, [UInt8])] = []
  ) {
    self.origin = origin
    self.key = key
    self.value = value
    self.headers = headers
  }

  /// The record's command. If it has no id, the id is derived from the record's topic, partition and offset.
  func command() throws(Rejection) -> Command {
    try CommandDecoder.decode(value, headers: headers, origin: origin)
  }
}

/// Records that are applied to the store together.
package struct CommandBatch: Sendable {
  package let records: [CommandRecord]
  /// Tells the source that none of the records is needed again. Does not wait for it.
  package let commit: @Sendable () -> Void

  package init(records: [CommandRecord], commit: @escaping @Sendable () -> Void) {
    self.records = records
    self.commit = commit
  }
}

/// The consumer group as the source of commands. The consumer becomes a member with ``join(as:)``.
package struct KafkaCommandSource: CommandSource {
  private let consumer: KafkaConsumer

  package init(_ consumer: KafkaConsumer) {
    self.consumer = consumer
  }

  package func next() async throws -> CommandBatch? {
    guard let batch = try await consumer.next() else { return nil }
    return CommandBatch(records: batch.records.map(CommandRecord.init)) { [consumer, ranges = batch.ranges] in
      consumer.commit(ranges)
    }
  }

  package func join(as worker: WorkerID) { consumer.join() }

  package func leave() { consumer.leave() }

  package func pause() { consumer.pause() }

  package func resume() { consumer.resume() }

  package var lag: Int { consumer.lag }
}

extension CommandRecord {
  fileprivate init(_ record: KafkaRecord) {
    self.init(
      origin: MessageOrigin(
        topic: record.topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp ?? -1),
      key: record.key, value: record.value, headers: record.headers.map { ($0.name, $0.value) })
  }
}
