import HTTPServer
import ReelhaulClient
import ReelhaulCodec
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore

extension ControlAPI {
  static let json = "application/json"
  static let lines = "application/x-ndjson"
  private static let mostLines = 10_000

  static let taskRoutes = [
    Route(
      method: "POST", path: "/v1/tasks",
      summary: "Submits one task, or with JSON lines many. The answer comes once Kafka has them.",
      accepts: [json, lines], answers: [202, 413, 415, 422]
    ) { api, call in
      let isMany = call.request.headers["content-type"]?.lowercased().hasPrefix(lines) == true
      return isMany ? try await api.submitMany(call.request) : try await api.submitOne(call.request)
    },
    Route(
      method: "GET", path: "/v1/tasks/{id}", summary: "All about a task, as `reelhaul show --json` tells it.",
      answers: [200, 400, 404]
    ) { api, call in
      HTTPResponse(type: json, try await api.show(call.path["id"] ?? ""))
    },
    Route(
      method: "POST", path: "/v1/tasks/{id}/{action}",
      summary: """
        Sends a command to a task: pause, resume, cancel, retry, remove (with `files`, whether its file goes too), \
        prioritize (with `priority`). The answer comes once Kafka has it; the fleet applies it soon after.
        """,
      accepts: [json], answers: [202, 400, 404, 415, 422]
    ) { api, call in
      try await api.control(call.path["id"] ?? "", call.path["action"] ?? "", call.request.body)
    },
  ]

  private func task(_ text: String) async throws -> TaskDocument {
    guard let id = UniqueID(text) else { throw HTTPError(400, "\"\(text.prefix(100))\" is no task id") }
    guard let task = try await store.task(id) else { throw HTTPError(404, "there is no task \(id)") }
    return task
  }

  private func show(_ id: String) async throws -> [UInt8] {
    let task = try await task(id)
    let report = try await TaskReport.of(task, in: store)
    return JSONWriter.write { TaskReport.write(report, advice: FailureAdvice.of(task), to: &$0) }
  }

  private func submitOne(_ request: HTTPRequest) async throws -> HTTPResponse {
    let key = try Self.key(of: request)
    let command: Command
    do throws(Rejection) {
      command = try CommandDecoder.decode(line: request.body) { key.map(Self.id) ?? .make() }
    } catch {
      return .problem(422, error.reason) { $0.member("code", error.code.rawValue) }
    }
    guard case .submit(let spec) = command else {
      return .problem(422, "this is a command, not a task: POST /v1/tasks/{id}/{action} sends commands")
    }
    try await send([command])
    return HTTPResponse(
      202, headers: ["Location": "/v1/tasks/\(spec.id)"], type: Self.json,
      JSONWriter.write { json in json.object { $0.member("id", spec.id) } })
  }

  private static func key(of request: HTTPRequest) throws -> String? {
    let key = request.headers["idempotency-key"]
    if key == "" { throw HTTPError(422, "the Idempotency-Key is empty") }
    return key
  }

  /// The id of the task that a key stands for: the same key is the same task, so that a repeated request submits it once.
  private static func id(_ key: String) -> UniqueID {
    let bytes = digest(.sha256, of: Array("reelhaul idempotency \(key)".utf8))
    let (high, low) = (
      bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) },
      bytes[8..<16].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    )
    return UniqueID(high: high & ~0xF000 | 0x8000, low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
  }

  /// `{"results": [{"line": 1, "id": …} or {"line": 2, "error": …}]}`; the right lines are sent although others are wrong.
  /// With a key, each line without an id gets one of its key and number.
  private func submitMany(_ request: HTTPRequest) async throws -> HTTPResponse {
    let (body, key) = (request.body, try Self.key(of: request))
    var ids = UniqueIDMaker()
    var commands: [Command] = []
    var results: [(line: Int, result: Result<UniqueID, Rejection>)] = []
    for (index, line) in body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      guard line.contains(where: { $0 > 0x20 }) else { continue }
      guard results.count < Self.mostLines else {
        throw HTTPError(413, "there are more than \(Self.mostLines) lines: send them in several requests")
      }
      do throws(Rejection) {
        let command = try CommandDecoder.decode(line: Array(line)) {
          key.map { Self.id("\($0) line \(index + 1)") } ?? ids.make()
        }
        commands.append(command)
        results.append((index + 1, .success(command.taskID)))
      } catch {
        results.append((index + 1, .failure(error)))
      }
    }
    guard !results.isEmpty else { return .problem(422, "the body has no lines") }
    if !commands.isEmpty { try await send(commands) }
    return HTTPResponse(
      commands.isEmpty ? 422 : 202, type: Self.json,
      JSONWriter.write(capacity: results.count * 64) { json in
        json.object { json in
          json.name("results")
          json.array { json in
            for (line, result) in results {
              json.object { json in
                json.member("line", line)
                switch result {
                case .success(let id): json.member("id", id)
                case .failure(let rejection):
                  json.member("code", rejection.code.rawValue)
                  json.member("error", rejection.reason)
                }
              }
            }
          }
        }
      })
  }

  private func control(_ id: String, _ name: String, _ body: [UInt8]) async throws -> HTTPResponse {
    var priority: Int64?
    var files = false
    do throws(DecodingFailure) {
      try JSONReader.read(body.isEmpty ? Array("{}".utf8) : body, refusingUnknownNames: true) {
        reader throws(DecodingFailure) in
        try reader.object { reader, name throws(DecodingFailure) in
          switch name {
          case "priority": priority = try reader.integer()
          case "files": files = try reader.bool()
          default: try reader.skip()
          }
        }
      }
    } catch {
      return .problem(422, "\(error)")
    }
    let action: ControlAction
    switch name {
    case "pause": action = .pause
    case "resume": action = .resume
    case "cancel": action = .cancel
    case "retry": action = .retry
    case "remove": action = .remove(files: files)
    case "prioritize":
      guard let priority, -1000...1000 ~= priority else {
        return .problem(422, "\"priority\" must be a number from -1000 to 1000")
      }
      action = .prioritize(Int(priority))
    default: throw HTTPError(404, "there is no action \"\(name.prefix(100))\"")
    }
    let task = try await task(id)
    let command = Command.Control(id: .make(), taskID: task.spec.id, action: action)
    try await send([.control(command)])
    return HTTPResponse(
      202, type: Self.json,
      JSONWriter.write { json in
        json.object { json in
          json.member("command", command.id)
          json.member("task", task.spec.id)
          json.member("action", action.name)
        }
      })
  }
}
