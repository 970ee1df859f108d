import Kafka
import Messages
import TaskCore

/// The messages of state changes: every event to `events`, and of every task its latest snapshot to `tasks`.
package enum EventMessages {
  /// In the order of `events`; snapshots come after them. `source` is the CloudEvents source.
  package static func messages(for events: [TaskEvent], topics: TopicPlan, source: String) -> [KafkaMessage] {
    var messages: [KafkaMessage] = []
    messages.reserveCapacity(events.count * 2)
    var latest: [UUID: Int] = [:]
    for (index, event) in events.enumerated() {
      latest[event.taskID] = index
      messages.append(
        KafkaMessage(
          topic: topics.events, key: key(event.taskID), value: TaskEventJSON.encode(event),
          headers: headers(event, source)))
    }
    for (index, event) in events.enumerated() where latest[event.taskID] == index {
      messages.append(
        KafkaMessage(topic: topics.tasks, key: key(event.taskID), value: event.task.map(TaskDocumentJSON.encode)))
    }
    return messages
  }

  private static func key(_ id: UUID) -> [UInt8] {
    Array(id.description.utf8)
  }

  private static func headers(_ event: TaskEvent, _ source: String) -> [KafkaHeader] {
    CloudEvent.headers(id: event.id, type: event.eventType, source: source, time: event.at)
      .map { KafkaHeader($0.0, $0.1) }
  }
}
