import ReelhaulKafka
import ReelhaulMessages
import TaskCore
import TaskStore

/// The messages of state changes: every event to `events`, and the latest snapshot of every task to `tasks`.
///
/// They come in the order of the events; a task's snapshot follows its last event. Each message is made when it is
/// asked for, so a round is never in memory as JSON.
package struct EventMessages: Sequence, Sendable {
  private let pending: PendingEvents
  private let topics: TopicPlan
  private let source: String

  /// `source` names the worker in the events, as a CloudEvents source.
  package init(_ pending: PendingEvents, topics: TopicPlan, source: String) {
    self.pending = pending
    self.topics = topics
    self.source = source
  }

  package func makeIterator() -> Iterator {
    Iterator(pending, topics, source)
  }

  package struct Iterator: IteratorProtocol {
    private let pending: PendingEvents
    private let topics: TopicPlan
    private let source: String
    /// The number of each task's last event.
    private let last: [UniqueID: Int]
    /// Snapshots as JSON, of tasks with more events to come.
    private var documents: [UniqueID: [UInt8]] = [:]
    private var batch = 0
    private var place = 0
    /// The headers of the batch, to which each event adds its id.
    private var headers: [KafkaHeader] = []
    private var snapshot: KafkaMessage?

    fileprivate init(_ pending: PendingEvents, _ topics: TopicPlan, _ source: String) {
      self.pending = pending
      self.topics = topics
      self.source = source
      var last: [UniqueID: Int] = [:]
      last.reserveCapacity(pending.tasks.count)
      for (id, sequence) in pending.batches.lazy.flatMap(\.events) where sequence > last[id, default: 0] {
        last[id] = sequence
      }
      self.last = last
    }

    package mutating func next() -> KafkaMessage? {
      if let snapshot = snapshot.take() { return snapshot }
      while batch < pending.batches.count {
        let current = pending.batches[batch]
        guard place < current.events.count else {
          (batch, place) = (batch + 1, 0)
          continue
        }
        if place == 0 { headers = headers(of: current) }
        let (id, sequence) = current.events[place]
        place += 1
        return message(of: TaskEvent(taskID: id, sequence: sequence, kind: current.kind, at: current.at, task: nil))
      }
      return nil
    }

    private func headers(of batch: OutboxBatch) -> [KafkaHeader] {
      CloudEvent(source: source, time: batch.at).headers(type: batch.kind.eventType)
        .map { KafkaHeader($0.name, $0.value) }
    }

    private mutating func message(of event: TaskEvent) -> KafkaMessage {
      let id = event.taskID
      let key = id.utf8
      let isLast = event.sequence == last[id]
      // A removed task has no document.
      let document = documents[id] ?? pending.tasks[id].map(TaskDocumentJSON.encode)
      if isLast {
        documents[id] = nil
        snapshot = KafkaMessage(topic: topics.tasks, key: key, value: document)
      } else {
        documents[id] = document
      }
      return KafkaMessage(
        topic: topics.events, key: key, value: TaskEventJSON.encode(event, task: document),
        headers: headers + [KafkaHeader("ce_id", event.id.utf8)])
    }
  }
}
