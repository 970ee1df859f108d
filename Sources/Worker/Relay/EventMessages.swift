import Kafka
import Messages
import TaskCore

/// The messages of state changes: every event to `events`, and of every task its latest snapshot to `tasks`.
package struct EventMessages: Sendable {
  /// What the relay knows of one task of a round.
  private struct Task {
    var key: [UInt8]
    /// The snapshot as JSON; `nil` once the task is removed.
    var document: [UInt8]?
    var lastSequence: Int
  }

  private let topics: TopicPlan
  private let source: String

  /// `source` names the worker in the events, as a CloudEvents source.
  package init(topics: TopicPlan, source: String) {
    self.topics = topics
    self.source = source
  }

  /// In the order of `events`; a task's snapshot comes where its last event does.
  package func messages(for events: [TaskEvent]) -> [KafkaMessage] {
    let tasks = tasks(of: events)
    var messages: [KafkaMessage] = []
    messages.reserveCapacity(events.count + tasks.count)
    for event in events {
      guard let task = tasks[event.taskID] else { continue }
      messages.append(
        KafkaMessage(
          topic: topics.events, key: task.key, value: TaskEventJSON.encode(event, task: task.document),
          headers: headers(of: event)))
      if event.sequence == task.lastSequence {
        messages.append(KafkaMessage(topic: topics.tasks, key: task.key, value: task.document))
      }
    }
    return messages
  }

  /// Each task is written as JSON once, with its last event: all events of a round were read with the same snapshot.
  private func tasks(of events: [TaskEvent]) -> [UUID: Task] {
    var last: [UUID: TaskEvent] = [:]
    for event in events where event.sequence > last[event.taskID]?.sequence ?? 0 { last[event.taskID] = event }
    return last.mapValues { event in
      Task(
        key: Array(event.taskID.description.utf8), document: event.task.map(TaskDocumentJSON.encode),
        lastSequence: event.sequence)
    }
  }

  private func headers(of event: TaskEvent) -> [KafkaHeader] {
    CloudEvent(source: source, time: event.at)
      .headers(id: Array(event.id.description.utf8), type: event.eventType).map { KafkaHeader($0.name, $0.value) }
  }
}
