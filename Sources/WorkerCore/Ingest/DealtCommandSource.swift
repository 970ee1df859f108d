import ReelhaulKafka
import ReelhaulSystem
import TaskStore

/// The commands of the development broker, whose group protocol lets all members wait for seconds whenever one joins or
/// dies. So its partitions are dealt out by rank among the workers that have just renewed their lease.
///
/// Workers may read the same partition while they see different leases, or none for a moment. This is safe: each reads in
/// order and begins at the group's committed offset, before which all commands are applied. So whoever applies a command
/// first has met all commands before it, and what the others do with it is a redelivery.
package final class DealtCommandSource: CommandSource {
  /// A worker that has not renewed its lease for this time reads no commands, as far as others are concerned: it has
  /// missed two renewals.
  private static let patience = Duration.milliseconds(1200)

  private struct State {
    var worker: WorkerID?
    /// What it has taken last.
    var share: [Int32]?
  }

  private let source: KafkaCommandSource
  private let consumer: KafkaConsumer
  private let topics: TopicPlan
  private let store: any LeaseStore
  private let loop: EventLoop
  private let state = Lock(State())

  package init(_ consumer: KafkaConsumer, topics: TopicPlan, store: any LeaseStore, loop: EventLoop) {
    source = KafkaCommandSource(consumer)
    self.consumer = consumer
    self.topics = topics
    self.store = store
    self.loop = loop
  }

  /// The partitions of a worker among all that read commands.
  static func share(of worker: WorkerID, among readers: [WorkerID], partitions: Int) -> [Int32] {
    // Also a worker whose own renewal is late goes on reading.
    let all = Set(readers + [worker]).map(\.rawValue).sorted()
    let rank = all.firstIndex(of: worker.rawValue) ?? 0
    return stride(from: rank, to: partitions, by: all.count).map(Int32.init)
  }

  package func next() async throws -> CommandBatch? { try await source.next() }

  package func join(as worker: WorkerID) {
    state.withLock { $0 = State(worker: worker) }
    loop.task { await self.renewed(worker) }
  }

  /// Looks at the leases of all workers, right after its own renewal, when the database has it all at hand. Without the
  /// store, the last share stays.
  package func renewed(_ worker: WorkerID) async {
    guard state.withLock({ $0.worker == worker }), let readers = try? await store.renewed(within: Self.patience) else {
      return
    }
    let share = Self.share(of: worker, among: readers, partitions: topics.partitions)
    state.withLock { state in
      guard state.worker == worker, state.share != share else { return }
      state.share = share
      consumer.take(share.map { TopicPartition(topics.commands, $0) })
    }
  }

  package func leave() {
    state.withLock { state in
      state = State()
      consumer.take([])
    }
  }

  package func pause() { source.pause() }

  package func resume() { source.resume() }

  package var lag: Int { source.lag }
}
