import HTTPServer
import TaskCore

extension ControlAPI {
  static let showRoutes = [
    Route(
      method: "GET", path: "/v1/tasks/{id}",
      summary: """
        All about a task, as `reelhaul show --json` tells it, but for `hooks`, and with `advice`. Its entity tag begins \
        with its sequence: `If-Match` of an action compares that.
        """, needs: .read, isPerQueue: true, segments: ["id": .id], answers: [200, 404], gives: .shownTask
    ) { api, call in
      let shown = try await api.shownTask(call.id, for: call.principal)
      return HTTPResponse(headers: ["ETag": shown.tag], type: json, shown.json)
    }
  ]

  /// Throws ``HTTPError`` if there is no such task for this principal.
  func shownTask(_ id: UniqueID, for principal: Principal) async throws -> ShownTask {
    guard let shown = try await shown.value(id), principal.reaches(shown.task) else {
      throw HTTPError(404, "there is no task \(id)")
    }
    return shown
  }
}
