import HTTPServer
import ReelhaulCodec
import TaskAdvice
import TaskCore
import TaskStore

extension ControlAPI {
  static let historyRoutes = [
    Route(
      method: "GET", path: "/v1/tasks/{id}/history",
      summary: """
        The life of a task, the oldest event first: its submission, every attempt that ended without success, what \
        people and programs asked for, and its end. Of more than 200 unusual events, some in the middle are left out.
        """,
      needs: .read, isPerQueue: true, segments: ["id": .id], answers: [200, 404],
      gives: .object([.must("history", .list(.historyEntry))])
    ) { api, call in
      let task = try await api.shownTask(call.id, for: call.principal).task
      let history = TaskHistory(of: task, try await api.store.history(of: task.spec.id))
      return HTTPResponse(type: json, JSONWriter.write { history.write(to: &$0) })
    }
  ]
}

extension JSONSchema {
  static let historyEntry = named(
    "HistoryEntry",
    .object([
      .must("at", time),
      .must(
        "type",
        text("The kind of the event: submitted, started, retrying, released, lost, failed, paused, resumed, …")),
      .must("sequence", integer("The number of the event.", 0...)), .must("attempt", integer("", 0...)),
      .must("epoch", integer("", 0...)), .may("startedAt", time), .may("worker", id),
      .may("actor", text("Who asked for it.")), .may("code", text()), .may("message", text()),
      .may("advice", text("What to do about it.")),
    ]))
}
