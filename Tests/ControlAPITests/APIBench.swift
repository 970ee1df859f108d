import ControlAPI
import HTTPServer
import ReelhaulClient
import ReelhaulMessages
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
  let sent: Lock<[Command]>
  let api: ControlAPI

  /// `ahead` makes commands that another server has sent just before these, or throws what Kafka answers.
  init(
    store: PostgresStore, pool: PostgresPool, loop: EventLoop, settings: ControlAPI.Settings = ControlAPI.Settings(),
    deadLetters: (any DeadLetterSource)? = DeadLetterTests.Letters(letters: []),
    ahead: @escaping @Sendable ([Command]) throws -> [Command] = { _ in [] }
  ) {
    (self.store, self.pool, self.loop) = (store, pool, loop)
    let sent = Lock<[Command]>([])
    self.sent = sent
    api = ControlAPI(
      store: store,
      send: { commands in
        sent.withLock { $0 += commands }
        _ = try await store.apply(try ahead(commands) + commands)
      }, loop: loop, version: "1.2.3", settings: settings, deadLetters: deadLetters)
  }

  /// Runs `body` with an API over an empty database.
  static func run(
    _ settings: ControlAPI.Settings = ControlAPI.Settings(), _ body: @escaping @Sendable (APIBench) async throws -> Void
  ) async throws {
    let loop = EventLoop(name: "api")
    defer { loop.shutdown() }
    try await PostgresPool.with(.patient(url: try await TestPostgres.shared.database()), size: 4) { pool in
      _ = try await Schema.migrator(pool).apply()
      try await body(APIBench(store: PostgresStore(pool: pool), pool: pool, loop: loop, settings: settings))
    }
  }

  func ask(
    _ method: String, _ target: String, _ body: String = "", _ headers: [String: String] = [:],
    type: String = "application/json", from peer: String = "127.0.0.1"
  ) async -> (status: Int, body: String, headers: HTTPFields) {
    var fields: HTTPFields = ["Host": "127.0.0.1:8080"]
    if !body.isEmpty { fields["Content-Type"] = type }
    for (name, value) in headers { fields[name] = value }
    var request = HTTPRequest(method: method, target: target, headers: fields, body: Array(body.utf8))
    request.peer = peer
    let response = await api.answer(request)
    return (response.status, String(decoding: response.bytes ?? [], as: UTF8.self), response.headers)
  }

  func submit(_ id: UniqueID, _ more: String = "") async -> Int {
    await ask("POST", "/v1/tasks", #"{"id": "\#(id)", "kind": "noop", "source": "noop://a/"\#(more)}"#).status
  }

  /// The text of a new token.
  func token(_ scope: TokenScope, queues: Set<String>? = nil, lifetime: Duration? = nil, name: String? = nil)
    async throws -> String
  {
    let secret = TokenSecret()
    let new = NewToken(
      name: name ?? "\(scope.rawValue) \(UniqueID.make())", scope: scope, queues: queues, lifetime: lifetime,
      hash: secret.hash)
    _ = try await store.createToken(new)
    return secret.text
  }

  func ask(as token: String, _ method: String, _ target: String, _ body: String = "") async -> (
    status: Int, body: String, headers: HTTPFields
  ) { await ask(method, target, body, ["Authorization": "Bearer \(token)"]) }

  /// Submits a task to a queue as somebody who may.
  func add(to queue: String, _ more: String = "") async throws -> UniqueID {
    let id = UniqueID.make()
    let spec = #"{"id": "\#(id)", "kind": "noop", "source": "noop://a/", "queue": "\#(queue)"\#(more)}"#
    guard case .submit(let task) = try CommandDecoder.decode(line: Array(spec.utf8), makeID: { .make() }) else {
      return id
    }
    _ = try await store.apply([.submit(task)])
    return id
  }
}
