import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore

extension HookEvent {
  /// The document of a task is cut above this size, in bytes: rows of the store have it.
  private static let limit = 128 << 10

  /// The events of a round whose tasks have a web hook, or whose queue has one. Those of a removed task have no document.
  static func events(of round: PendingEvents, queues: [String: String]) -> [HookEvent] {
    // Most rounds have none.
    guard
      !queues.isEmpty || round.tasks.values.contains(where: { $0.spec.notify != nil })
        || round.removed.values.contains(where: { $0.notify != nil })
    else { return [] }
    var events: [HookEvent] = []
    for batch in round.batches {
      for (id, sequence) in batch.events {
        guard let spec = round.tasks[id]?.spec ?? round.removed[id], let url = spec.notify ?? queues[spec.queue],
          case .web(let web)? = try? ResourceURL(url)
        else { continue }
        let event = TaskEvent(
          taskID: id, sequence: sequence, kind: batch.kind, at: batch.at, actor: batch.actor, task: nil)
        events.append(
          HookEvent(
            taskID: id, sequence: sequence, kind: batch.kind, url: url, host: web.host,
            json: TaskEventJSON.encode(event, task: round.tasks[id].map { document(of: $0) }),
            queue: spec.notify == nil ? spec.queue : nil))
      }
    }
    return events
  }

  private static func document(of task: TaskDocument) -> [UInt8] {
    let json = TaskDocumentJSON.encode(task)
    return json.count > limit ? TaskDocumentJSON.encode(task.cut) : json
  }

  /// The event's own id, the same at every attempt.
  var id: UniqueID {
    TaskEvent(taskID: taskID, sequence: sequence, kind: kind, at: Timestamp(microseconds: 0), task: nil).id
  }

  /// A CloudEvent 1.0 in structured JSON, with the event as its data.
  func cloudEvent(source: String, createdAt: Timestamp) -> [UInt8] {
    JSONWriter.write(capacity: json.count + 512) { writer in
      writer.object { writer in
        writer.member("specversion", "1.0")
        writer.member("id", id)
        writer.member("type", kind.eventType)
        writer.member("source", source)
        writer.member("subject", taskID)
        writer.member("time", (try? TaskEventJSON.decode(json))?.at ?? createdAt)
        writer.member("datacontenttype", "application/json")
        writer.name("data")
        writer.raw(json)
      }
    }
  }
}
