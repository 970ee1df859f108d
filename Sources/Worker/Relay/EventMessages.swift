import Kafka
import Messages
import TaskCore
import TaskStore

/// The messages of state changes: every event to `events`, and of every task its latest snapshot to `tasks`.
package struct EventMessages: Sendable {
  /// What a round tells of one task.
  private struct Told {
    let key: [UInt8]
    /// The snapshot as JSON, written once for all events of the task; `nil` once the task is removed.
    let document: [UInt8]?
    var lastSequence: Int
  }

  private let topics: TopicPlan
  private let source: String

  /// `source` names the worker in the events, as a CloudEvents source.
  package init(topics: TopicPlan, source: String) {
    self.topics = topics
    self.source = source
  }

  /// In the order of the events; a task's snapshot comes where its last event does.
  package func messages(for pending: PendingEvents) -> [KafkaMessage] {
    let told = told(of: pending)
    var messages: [KafkaMessage] = []
    messages.reserveCapacity(2 * pending.batches.reduce(0) { $0 + $1.events.count })
    for batch in pending.batches {
      // All but the id are those of the batch.
      let headers = CloudEvent(source: source, time: batch.at).headers(type: batch.kind.eventType)
        .map { KafkaHeader($0.name, $0.value) }
      for (id, sequence) in batch.events {
        guard let task = told[id] else { continue }
        let event = TaskEvent(taskID: id, sequence: sequence, kind: batch.kind, at: batch.at, task: nil)
        messages.append(
          KafkaMessage(
            topic: topics.events, key: task.key, value: TaskEventJSON.encode(event, task: task.document),
            headers: headers + [KafkaHeader("ce_id", event.id.utf8)]))
        if sequence == task.lastSequence {
          messages.append(KafkaMessage(topic: topics.tasks, key: task.key, value: task.document))
        }
      }
    }
    return messages
  }

  private func told(of pending: PendingEvents) -> [UUID: Told] {
    var told: [UUID: Told] = [:]
    told.reserveCapacity(pending.tasks.count)
    for (id, sequence) in pending.batches.lazy.flatMap(\.events) {
      if let last = told[id]?.lastSequence {
        told[id]?.lastSequence = max(last, sequence)
      } else {
        told[id] = Told(
          key: id.utf8, document: pending.tasks[id].map(TaskDocumentJSON.encode), lastSequence: sequence)
      }
    }
    return told
  }
}
