import ControlAPI
import HTTPServer
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// An API over a real store, to which its commands go at once.
struct APIBench: Sendable {
  let store: PostgresStore
  let pool: PostgresPool
  let loop: EventLoop
  let sent = Lock<[Command]>([])
  var deadLetters: (any DeadLetterSource)?

  var api: ControlAPI {
    ControlAPI(
      store: store,
      send: { [store, sent] commands in
        sent.withLock { $0 += commands }
        _ = try await store.apply(commands)
      }, loop: loop, version: "1.2.3", deadLetters: deadLetters)
  }

  /// Runs `body` with an API over an empty database.
  static func run(_ body: @escaping @Sendable (APIBench) async throws -> Void) async throws {
    let loop = EventLoop(name: "api")
    defer { loop.shutdown() }
    try await PostgresPool.with(.patient(url: try await TestPostgres.shared.database()), size: 4) { pool in
      _ = try await Schema.migrator(pool).apply()
      try await body(APIBench(store: PostgresStore(pool: pool), pool: pool, loop: loop))
    }
  }

  func ask(
    _ method: String, _ target: String, _ body: String = "", _ headers: [String: String] = [:],
    type: String = "application/json"
  ) async -> (status: Int, body: String, headers: HTTPFields) {
    var fields: HTTPFields = ["Host": "127.0.0.1:8080"]
    if !body.isEmpty { fields["Content-Type"] = type }
    for (name, value) in headers { fields[name] = value }
    let request = HTTPRequest(method: method, target: target, headers: fields, body: Array(body.utf8))
    let response = await api.answer(request)
    guard case .bytes(let bytes) = response.body else { return (response.status, "", response.headers) }
    return (response.status, String(decoding: bytes, as: UTF8.self), response.headers)
  }

  func submit(_ id: UniqueID, _ more: String = "") async -> Int {
    await ask("POST", "/v1/tasks", #"{"id": "\#(id)", "kind": "noop", "source": "noop://a/"\#(more)}"#).status
  }
}
