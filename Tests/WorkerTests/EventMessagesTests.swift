import ReelhaulKafka
import ReelhaulMessages
import TaskCore
import TaskStore
import Testing
import WorkerCore

@Suite struct EventMessagesTests {
  private let topics = TopicPlan()
  private let first = UniqueID(high: 1, low: 1)
  private let second = UniqueID(high: 1, low: 2)

  private func batch(_ kind: TaskEvent.Kind, _ events: (task: UniqueID, sequence: Int)...) -> OutboxBatch {
    OutboxBatch(row: 1, kind: kind, at: Timestamp(microseconds: 1_000_000), events: events)
  }

  private func document(_ task: UniqueID) -> TaskDocument {
    TaskDocument(
      spec: TaskSpec(id: task, kind: .noop, source: "noop:"), state: .queued, createdAt: Timestamp(microseconds: 0))
  }

  @Test("a round has every event and the last snapshot of each task")
  func everyEventAndTheLastSnapshotOfEachTask() throws {
    let pending = PendingEvents(
      batches: [
        batch(.submitted, (first, 1)), batch(.canceled, (second, 4)), batch(.started, (first, 2)),
        batch(.removed, (second, 5)),
      ], tasks: [first: document(first)])
    let messages = Array(EventMessages(pending, topics: topics, source: "/workers/h/1"))
    let told = messages.filter { $0.topic == topics.events }
    #expect(
      try told.map { try TaskEventJSON.decode($0.value ?? []).kind } == [.submitted, .canceled, .started, .removed])
    #expect(told.map(\.key) == [first, second, first, second].map { Array($0.description.utf8) })

    let snapshots = messages.filter { $0.topic == topics.tasks }
    #expect(snapshots.map(\.key) == [first, second].map { Array($0.description.utf8) })
    #expect(snapshots[1].value == nil, "a tombstone")
    #expect(try TaskDocumentJSON.decode(try #require(snapshots[0].value)).spec.id == first)
  }

  @Test("documents that are cut lack the long fields, say so, and are bounded")
  func cutDocuments() throws {
    var long = document(first)
    long.spec.source = "https://a.example/" + String(repeating: "a", count: TaskSpec.urlLimit - 18)
    long.spec.destination = "storage://default/" + String(repeating: "a", count: TaskSpec.urlLimit - 18)
    long.spec.labels = ["title": String(repeating: "a", count: 3 << 20)]
    long.spec.after = (0..<1000).map { UniqueID(high: 3, low: $0) }
    long.spec.parameters = Array("[1]".utf8)
    long.output = Array("[2]".utf8)
    long.error = TaskFailure(code: .http(503), message: String(repeating: "e", count: 1000), class: .retry)
    let pending = PendingEvents(
      batches: [batch(.submitted, (first, 1), (second, 1)), batch(.started, (first, 2))],
      tasks: [first: long, second: document(second)])
    let whole = TaskDocumentJSON.encode(long).count
    for message in EventMessages(pending, topics: topics, source: "/workers/h/1", cutAbove: EventMessages.excerpt) {
      let isCut = message.key == first.utf8
      #expect((message.value?.count ?? 0) < 2 * EventMessages.excerpt)
      #expect(
        message.headers.filter { $0.name == "task-cut" }.map(\.value) == (isCut ? [Array("\(whole)".utf8)] : []))
      guard message.topic == topics.tasks else { continue }
      let kept = try TaskDocumentJSON.decode(message.value ?? [])
      #expect(kept.spec.source == (isCut ? long : document(second)).spec.source && kept.spec.labels.isEmpty)
      #expect(kept.error?.code == (isCut ? .http(503) : nil) && kept.spec.parameters == nil && kept.spec.after == [])
    }
    for message in EventMessages(pending, topics: topics, source: "/workers/h/1") {
      #expect(!message.headers.contains { $0.name == "task-cut" })
    }
  }

  @Test("events have CloudEvents headers, equal each time they are sent")
  func headersAreThoseOfCloudEventsAndTheSameEachTime() throws {
    let pending = PendingEvents(
      batches: [batch(.succeeded, (first, 3), (second, 3))], tasks: [first: document(first), second: document(second)])
    let messages = Array(EventMessages(pending, topics: topics, source: "/workers/h/1"))
    let message = messages[0]
    let again = try #require(Array(EventMessages(pending, topics: topics, source: "/workers/h/2")).first)
    func header(_ name: String, _ message: KafkaMessage) -> String? {
      message.headers.first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
    }
    #expect(header("ce_type", message) == "reelhaul.task.succeeded")
    #expect(header("ce_source", message) == "/workers/h/1")
    #expect(header("ce_time", message) == "1970-01-01T00:00:01.000000Z")
    #expect(header("ce_id", message) != nil && header("ce_id", message) == header("ce_id", again))
    let ids = messages.compactMap { header("ce_id", $0) }
    #expect(Set(ids).count == 2, "every event has its own")
  }
}
