import HTTPServer
import ReelhaulClient
import ReelhaulCodec
import ReelhaulMessages
import TaskAdvice
import TaskCore
import TaskStore

extension ControlAPI {
  /// The second path is the one of earlier versions.
  static let actionRoutes = ["/v1/tasks/{id}/actions/{action}", "/v1/tasks/{id}/{action}"].map { path in
    Route(
      method: "POST", path: path,
      summary: """
        Sends a command to a task: pause, resume, cancel, retry, remove (with `files`, whether its file goes too), \
        prioritize (with `priority`). The answer comes once Kafka has it; the fleet applies it soon after. With \
        `If-Match` and the entity tag of the task, it is sent only if nothing has happened to the task since. With \
        `Idempotency-Key`, the same request is the same command.
        """,
      needs: .write, isPerQueue: true, segments: ["id": .id, "action": .text(values: ControlAction.names)],
      query: Waiting.fields,
      headers: [
        .init(
          name: "If-Match", help: "The entity tag of the task, or `*`: sent only if nothing has happened to it since.",
          schema: .text(pattern: "^[!-~]+$", length: 1...255)),
        IdempotencyKeys.field("the same key with the same body is the same command"),
      ], accepts: [json], takes: .actionBody, example: "{}",
      answers: [200, 202, 404, 409, 412], gives: .sentCommand
    ) { api, call in try await api.act(call) }
  }

  private func act(_ call: Route.Call) async throws -> HTTPResponse {
    let waiting = Waiting(call.query)
    let action = try Self.action(call)
    let task = try call.id
    let key = try IdempotencyKeys.key(of: call.request)
    // Another action, or one with another body, is another command.
    let id = key.map { key in
      let body = String(decoding: call.request.body, as: UTF8.self)
      return IdempotencyKeys.id("\(key) \(action.name) \(task) \(body)", of: call.principal)
    }
    let tags = call.request.headers["if-match"]
    do {
      let shown = try await shownTask(task, for: call.principal)
      guard EntityTag.matches(tags, sequence: shown.task.sequence) else {
        throw HTTPError(412, "the task has changed since: read it again")
      }
    } catch let error as HTTPError where [404, 412].contains(error.status) {
      // Of a request that is sent again, the first one may be what has changed or removed the task.
      guard let id, tags == nil || EntityTag.isPlausible(tags), try await outcomes.value(id) != nil else { throw error }
    }
    let command = Command.Control(id: id ?? .make(), taskID: task, action: action, actor: call.principal.actor)
    try await deliver(.control(command), isRepeatable: id != nil)
    guard case .applied(let end) = waiting else { return Self.sent(command, nil) }
    switch try await Waiting.poll(until: end, on: loop, { try await outcomes.value(command.id) }) {
    case nil: return Self.sent(command, nil)
    case .applied: return Self.sent(command, "applied")
    case .refused(let code, let reason):
      var problem = HTTPProblem(409, reason, code: ProblemCode.refused.rawValue)
      problem.members = { json in
        json.member("reason", code)
        json.member("command", command.id)
      }
      throw problem
    }
  }

  private static func sent(_ command: Command.Control, _ outcome: String?) -> HTTPResponse {
    HTTPResponse(
      outcome == nil ? 202 : 200, type: json,
      JSONWriter.write { json in
        json.object { json in
          json.member("command", command.id)
          json.member("task", command.taskID)
          json.member("action", command.action.name)
          json.member("outcome", outcome)
        }
      })
  }

  private static func action(_ call: Route.Call) throws(HTTPError) -> ControlAction {
    var (priority, files): (Int?, Bool) = (nil, false)
    try call.readBody(["priority", "files"]) { reader, name throws(DecodingFailure) in
      switch name {
      case "priority": priority = try reader.integer(TaskSpec.priorities)
      case "files": files = try reader.bool()
      default: try reader.skip()
      }
    }
    guard let action = ControlAction(name: call.path["action"] ?? "", priority: priority, files: files) else {
      throw .missing("priority", "it is the new priority")
    }
    return action
  }
}
