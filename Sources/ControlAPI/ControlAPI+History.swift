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
      answers: [200, 400, 404]
    ) { api, call in
      let task = try await api.task(call.path["id"] ?? "")
      let history = TaskHistory(of: task, try await api.store.history(of: task.spec.id))
      return HTTPResponse(type: json, JSONWriter.write { history.write(to: &$0) })
    }
  ]
}
