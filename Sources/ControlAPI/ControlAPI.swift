import HTTPServer
import ReelhaulClient
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// The HTTP API of a fleet, and its dashboard. Tasks are read from the store; commands go through Kafka like everyone's.
package struct ControlAPI: HTTPHandler {
  /// Sends commands, and returns once Kafka has them.
  package typealias Send = @Sendable ([Command]) async throws -> Void

  let store: any ControlStore
  let send: Send
  let loop: EventLoop
  let version: String
  let settings: Settings
  let log: Logger?
  /// Gets the spans of requests; nil if nobody wants them.
  let tracer: Tracer?
  /// The OpenAPI document.
  let description: [UInt8]
  /// Nil if this server reads no events.
  let events: EventHub?
  /// Nil if this server does not read them.
  let deadLetters: (any DeadLetterSource)?
  let snapshots = Snapshots()
  let readiness: Readiness
  let shown: Batches<UniqueID, ShownTask>
  /// The ids of removed tasks, and whether they had succeeded.
  let removed: Batches<UniqueID, Bool>
  let outcomes: Batches<UniqueID, AppliedCommand>
  let authenticator: Authenticator
  let compressor = Compressor()
  let keys = IdempotencyKeys()
  private let rates: Lock<RateLimit<String>>?
  /// Those that the log tells, by status.
  private let toldRefusals = Lock(RateLimit<Int>(every: .seconds(1), burst: 10))

  static let json = "application/json"

  static let taskRoutes = listRoutes + submitRoutes + showRoutes + actionRoutes

  static let routes =
    probeRoutes + taskRoutes + fleetRoutes + inspectionRoutes + [streamRoute, robotsRoute] + eventRoutes + sessionRoutes
    + descriptionRoutes + dashboardRoutes + controlRoutes + historyRoutes + operationRoutes + deadLetterRoutes
    + hookRoutes

  package init(
    store: any ControlStore, send: @escaping Send, loop: EventLoop, version: String, settings: Settings = Settings(),
    log: Logger? = nil, tracer: Tracer? = nil, events: EventHub? = nil,
    deadLetters: (any DeadLetterSource)? = nil
  ) {
    self.store = store
    self.send = send
    self.loop = loop
    self.version = version
    self.events = events
    self.deadLetters = deadLetters
    self.log = log
    readiness = Readiness(store, log: log)
    self.tracer = tracer
    var settings = settings
    settings.names.formUnion(["localhost", "127.0.0.1", "[::1]"])
    self.settings = settings
    description = OpenAPI(routes: Self.routes, version: version, prefix: settings.prefix).encoded()
    authenticator = Authenticator(store, wrongTokens: settings.wrongTokens)
    shown = Batches { [store] in try await ShownTask.read($0, from: store) }
    removed = Batches { [store] in try await store.removed(among: $0) }
    outcomes = Batches { [store] in try await store.outcomes(of: $0) }
    rates = settings.requestsPerSecond.map {
      Lock(RateLimit(every: .seconds(1) / max(1, $0), burst: max(1, 2 * $0)))
    }
  }

  /// The log tells if the schema does not fit this program. What else is wrong is told by those who meet it.
  package func checkSchema() async {
    try? await readiness.check()
  }

  package func admit(_ head: HTTPRequest) async -> HTTPAdmission {
    let exchange = Exchange(head, self)
    var actor: String?
    do {
      let (route, _) = try self.route(of: head)
      _ = try await principal(for: route, exchange, &actor)
      guard !route.accepts.isEmpty else { throw HTTPError(400, "\(route.method) \(route.path) takes no body") }
      return .body(limit: route.bodyLimit)
    } catch {
      let response = exchange.finished(exchange.response(for: error))
      exchange.log(response, actor: actor)
      return .refused(response)
    }
  }

  package func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let exchange = Exchange(request, self)
    var response: HTTPResponse
    var actor: String?
    var place: String?
    do {
      if request.method == "OPTIONS" { return exchange.finished(try options(of: request)) }
      // The page's relative paths would miss the prefix.
      if !settings.prefix.isEmpty, request.path == settings.prefix {
        return exchange.finished(HTTPResponse(308, headers: ["Location": "/"]))
      }
      let (route, path) = try self.route(of: request)
      place = route.path
      let principal = try await principal(for: route, exchange, &actor)
      try count(principal, at: route)
      try route.check(path)
      let call = Route.Call(
        request: request, path: path, query: try route.fields(of: request), principal: principal,
        trace: exchange.trace)
      response = try await route.run(self, call)
      // What is shown where nothing is needed was not looked at, and guards nothing.
      if case .stream(let write) = response.body, principal.token != nil, let secret = exchange.secret {
        response.body = .stream { [authenticator, loop] in
          await authenticator.guarding(principal, secret, on: loop, $0, write)
        }
      }
    } catch {
      response = exchange.response(for: error)
    }
    response = exchange.finished(response)
    exchange.record(response, route: place)
    exchange.log(response, actor: actor)
    return response
  }

  package func refusal(_ error: HTTPError, of request: HTTPRequest?) -> HTTPResponse {
    let exchange = Exchange(request ?? HTTPRequest(target: "/"), self)
    // For a client it is one that the path does not have.
    let cause: any Error =
      error.code == HTTPError.unknownMethod
      ? WrongMethod(method: "this method", allowed: Self.methods(of: Self.routes)) : error
    let response = exchange.finished(exchange.response(for: cause))
    // A server without room refuses very many.
    let isTold = error.status != 503 || toldRefusals.withLock { $0.admit(error.status, at: .now) == nil }
    if request != nil, isTold { exchange.log(response, actor: nil) }
    return response
  }

  /// Counts a request of a token and of its sessions; of everybody, where none is needed. Throws ``TooMany``. Probes, the
  /// page and sign-ins show none: they would take each other's share.
  private func count(_ principal: Principal, at route: Route) throws(TooMany) {
    guard route.need != .nothing, principal.token != nil || !settings.requiresTokens else { return }
    let key = principal.account?.description ?? principal.actor
    if let wait = rates?.withLock({ $0.admit(key, at: .now) }) { throw TooMany(wait: wait) }
  }

  /// Who calls a route. Throws if the route is not for them; `actor` is their name also then.
  private func principal(for route: Route, _ exchange: Exchange, _ actor: inout String?) async throws -> Principal {
    guard settings.requiresTokens, !(route.path == "/metrics" && settings.hasOpenMetrics) else {
      actor = Principal.everybody.actor
      return .everybody
    }
    guard case .scope = route.need else { return Principal(actor: "", scope: .read, queues: []) }
    var principal: Principal?
    switch try await authenticator.principal(
      of: exchange.request, address: exchange.client.network,
      session: exchange.isOfForeignPage ? nil : exchange.session)
    {
    case .principal(let found): principal = found
    case .unknown: break
    case .tooMany(let wait): throw TooMany(wait: wait)
    }
    actor = principal?.actor
    let decision = Access.decide(route.need, isPerQueue: route.isPerQueue, for: principal)
    if case .forbidden(let reason) = decision { throw HTTPError(403, reason) }
    guard decision == .allowed, let principal else {
      throw HTTPError(
        401, "a valid token is needed: 'reelhaul token create' makes one, and 'Authorization: Bearer …' shows it")
    }
    return principal
  }
}

/// Requests come faster than they may.
struct TooMany: Error {
  var wait: Duration
}
