import HTTPServer
import ReelhaulClient
import ReelhaulCodec
import ReelhaulDigest
import ReelhaulSystem
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
  /// Nil if this server reads no events.
  let events: EventHub?
  /// The OpenAPI document.
  let description: [UInt8]
  let snapshots = Snapshots()
  /// The names under which the server may be called. Another name in `Host` is a page of somebody else's whose name was
  /// made to lead here.
  let names: Set<String>

  static let bodyLimit = 4 << 20
  static let routes =
    probeRoutes + taskRoutes + fleetRoutes + [eventRoute] + eventRoutes + hookRoutes + descriptionRoutes
    + dashboardRoutes

  package init(
    store: any ControlStore, send: @escaping Send, loop: EventLoop, version: String, names: Set<String> = [],
    events: EventHub? = nil
  ) {
    self.store = store
    self.send = send
    self.loop = loop
    self.version = version
    self.events = events
    description = OpenAPI(routes: Self.routes, version: version).encoded()
    self.names = names.union(["localhost", "127.0.0.1", "[::1]"])
  }

  package func admit(_ head: HTTPRequest) async -> HTTPAdmission {
    switch route(of: head) {
    case .failure(let refused): .refused(dressed(refused.response))
    case .success(let (route, _)):
      route.accepts.isEmpty
        ? .refused(dressed(.problem(400, "\(route.method) \(route.path) takes no body"))) : .body(limit: Self.bodyLimit)
    }
  }

  package func answer(_ request: HTTPRequest) async -> HTTPResponse {
    switch route(of: request) {
    case .failure(let refused): return dressed(refused.response)
    case .success(let (route, path)):
      do {
        try route.check(path)
        let call = Route.Call(request: request, path: path, query: try route.fields(of: request))
        return dressed(validated(try await route.run(self, call), request))
      } catch let error as HTTPError {
        return dressed(.problem(error.status, error.message))
      } catch let error as ReelhaulClientError {
        return dressed(unavailable("Kafka did not take the commands: \(error)"))
      } catch is CancellationError {
        return dressed(.problem(503, "the request was canceled"))
      } catch {
        return dressed(unavailable("the state of the fleet cannot be read: \(error)"))
      }
    }
  }

  package func refusal(_ error: HTTPError) -> HTTPResponse { dressed(.problem(error.status, error.message)) }

  private struct Refused: Error {
    var response: HTTPResponse
  }

  private func route(of request: HTTPRequest) -> Result<(Route, [String: String]), Refused> {
    if let problem = strangers(request) { return .failure(Refused(response: problem)) }
    guard let segments = request.segments else {
      return .failure(Refused(response: .problem(400, "the path is not encoded correctly")))
    }
    let fitting = Self.routes.compactMap { route in route.match(segments).map { (route, $0) } }
    guard !fitting.isEmpty else {
      return .failure(Refused(response: .problem(404, "there is nothing at \(request.path.prefix(200))")))
    }
    let method = request.method == "HEAD" ? "GET" : request.method
    if let found = fitting.first(where: { $0.0.method == method }) {
      if let problem = wrongType(request, found.0) { return .failure(Refused(response: problem)) }
      return .success(found)
    }
    var response = HTTPResponse.problem(405, "\(request.method) is not possible here")
    response.headers["Allow"] = Set(fitting.map(\.0.method)).sorted().joined(separator: ", ")
    return .failure(Refused(response: response))
  }

  /// A browser that another site's page uses can reach this machine. Its requests are known by the name that they call,
  /// and by what browsers say of where they come from.
  private func strangers(_ request: HTTPRequest) -> HTTPResponse? {
    let host = request.headers["host"]?.lowercased() ?? ""
    let end = host.hasPrefix("[") ? host.firstIndex(of: "]").map { host.index(after: $0) } : host.firstIndex(of: ":")
    let name = String(end.map { host[..<$0] } ?? host[...])
    guard names.contains(name) else {
      return .problem(403, "this server is not called \"\(name.prefix(200))\": name it with --name")
    }
    guard request.method != "GET", request.method != "HEAD" else { return nil }
    if let origin = request.headers["origin"], !["http://\(host)", "https://\(host)"].contains(origin.lowercased()) {
      return .problem(403, "requests from pages of another origin are refused")
    }
    if let site = request.headers["sec-fetch-site"], site != "same-origin", site != "none" {
      return .problem(403, "requests from pages of another site are refused")
    }
    return nil
  }

  private func wrongType(_ request: HTTPRequest, _ route: Route) -> HTTPResponse? {
    guard !route.accepts.isEmpty else { return nil }
    let type = request.headers["content-type"]?.prefix { $0 != ";" && $0 != " " }.lowercased()
    // A page of another site can send a form, but not this type.
    guard type.map(route.accepts.contains) == true else {
      return .problem(415, "the body must be \(route.accepts.joined(separator: " or "))")
    }
    return nil
  }

  private func unavailable(_ detail: String) -> HTTPResponse {
    var response = HTTPResponse.problem(503, detail)
    response.headers["Retry-After"] = "2"
    return response
  }

  /// Gives what can be read an entity tag, and answers 304 to those who have it.
  private func validated(_ response: HTTPResponse, _ request: HTTPRequest) -> HTTPResponse {
    guard response.status == 200, request.method == "GET" || request.method == "HEAD",
      case .bytes(let bytes) = response.body
    else { return response }
    var response = response
    let tag = "\"\(Hex.encode(Array(digest(.sha256, of: bytes).prefix(12))))\""
    response.headers["ETag"] = tag
    let known = request.headers["if-none-match"]?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
    guard known.contains(tag) || known.contains("W/\(tag)") || known.contains("*") else { return response }
    response.status = 304
    response.body = .bytes([])
    return response
  }

  private func dressed(_ response: HTTPResponse) -> HTTPResponse {
    var response = response
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] =
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
      + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    response.headers["Referrer-Policy"] = "no-referrer"
    if response.headers["Cache-Control"] == nil { response.headers["Cache-Control"] = "no-cache" }
    return response
  }
}
