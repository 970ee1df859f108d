import Kafka
import Messages
import TaskCore
import Testing
import Worker

@Suite struct EventMessagesTests {
  private let topics = TopicPlan()
  private let first = UUID(high: 1, low: 1)
  private let second = UUID(high: 1, low: 2)

  private func event(_ task: UUID, _ sequence: Int, _ kind: TaskEvent.Kind) -> TaskEvent {
    let spec = TaskSpec(id: task, kind: .noop, source: "noop:")
    let document = TaskDocument(
      spec: spec, state: .queued, sequence: sequence, createdAt: Timestamp(microseconds: 0))
    return TaskEvent(
      taskID: task, sequence: sequence, kind: kind, at: Timestamp(microseconds: 1_000_000),
      task: kind == .removed ? nil : document)
  }

  @Test func everyEventAndTheLastSnapshotOfEachTask() throws {
    let events = [
      event(first, 1, .submitted), event(second, 4, .canceled), event(first, 2, .started), event(second, 5, .removed),
    ]
    let messages = EventMessages(topics: topics, source: "/workers/h/1").messages(for: events)
    let told = messages.filter { $0.topic == topics.events }
    #expect(try told.map { try TaskEventJSON.decode($0.value ?? []).kind } == events.map(\.kind))
    #expect(told.map(\.key) == events.map { Array($0.taskID.description.utf8) })

    let snapshots = messages.filter { $0.topic == topics.tasks }
    #expect(snapshots.map(\.key) == [first, second].map { Array($0.description.utf8) })
    #expect(snapshots[1].value == nil, "a tombstone")
    #expect(try TaskDocumentJSON.decode(try #require(snapshots[0].value)).spec.id == first)
  }

  @Test func headersAreThoseOfCloudEventsAndTheSameEachTime() {
    let message = EventMessages(topics: topics, source: "/workers/h/1").messages(for: [event(first, 3, .succeeded)])[0]
    let again = EventMessages(topics: topics, source: "/workers/h/2").messages(for: [event(first, 3, .succeeded)])[0]
    func header(_ name: String, _ message: KafkaMessage) -> String? {
      message.headers.first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
    }
    #expect(header("ce_type", message) == "reelhaul.task.succeeded")
    #expect(header("ce_source", message) == "/workers/h/1")
    #expect(header("ce_time", message) == "1970-01-01T00:00:01.000000Z")
    #expect(header("ce_id", message) != nil && header("ce_id", message) == header("ce_id", again))
  }
}
