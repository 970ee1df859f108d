import ReelhaulKafka
import ReelhaulMessages
import TaskCore
import TaskStore

/// The messages of state changes: every event to `events`, and the latest snapshot of every task to `tasks`.
///
/// They come in the order of the events; a task's snapshot follows its last event. Each message is made when it is
/// asked for, so a round is never in memory as JSON.
package struct EventMessages: Sequence, IteratorProtocol, Sendable {
  private let pending: PendingEvents
  private let topics: TopicPlan
  private let source: String
  private let limit: Int?
  /// The number of each task's last event.
  private let last: [UniqueID: Int]
  /// Snapshots, of tasks with more events to come.
  private var documents: [UniqueID: Document] = [:]
  private var batch = 0
  private var place = 0
  /// The headers of the batch, to which each event adds its id.
  private var headers: [KafkaHeader] = []
  private var snapshot: KafkaMessage?

  private struct Document {
    var json: [UInt8]
    /// The header that says that the document is cut.
    var cut: KafkaHeader?
  }

  /// The longest document of a task that is never cut, in bytes.
  package static let excerpt = 16 << 10

  /// `source` names the worker in the events, as a CloudEvents source.
  ///
  /// - Parameter limit: leaves `output`, `parameters`, `labels` and `after` out of documents of more bytes, at least
  ///   ``excerpt``, and the end of a long error. Their events have the header `task-cut`, with the number of bytes of the
  ///   whole document.
  package init(_ pending: PendingEvents, topics: TopicPlan, source: String, cutAbove limit: Int? = nil) {
    self.pending = pending
    self.topics = topics
    self.source = source
    self.limit = limit
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
      return message(
        of: TaskEvent(
          taskID: id, sequence: sequence, kind: current.kind, at: current.at, actor: current.actor, task: nil))
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
    let shared = documents.isEmpty ? nil : documents[id]
    let document = shared ?? pending.tasks[id].map(document(of:))
    if isLast {
      if shared != nil { documents[id] = nil }
      snapshot = KafkaMessage(
        topic: topics.tasks, key: key, value: document?.json, headers: document?.cut.map { [$0] } ?? [])
    } else {
      documents[id] = document
    }
    var its = headers
    its.reserveCapacity(headers.count + 2)
    its.append(KafkaHeader("ce_id", event.id.utf8))
    if let cut = document?.cut { its.append(cut) }
    if let trace = pending.tasks[id]?.spec.trace { its += trace.headers.map { KafkaHeader($0.name, $0.value) } }
    return KafkaMessage(
      topic: topics.events, key: key, value: TaskEventJSON.encode(event, task: document?.json), headers: its)
  }

  private func document(of task: TaskDocument) -> Document {
    let json = TaskDocumentJSON.encode(task)
    guard let limit, json.count > limit else { return Document(json: json) }
    return Document(json: TaskDocumentJSON.encode(task.cut), cut: KafkaHeader("task-cut", String(json.count)))
  }
}
