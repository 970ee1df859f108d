import HTTPServer

extension ControlAPI {
  /// The route of a request, and the segments in braces. Throws ``HTTPError``, or ``WrongMethod``.
  func route(of request: HTTPRequest) throws -> (Route, [String: String]) {
    let found = Result { () throws(HTTPError) in try routes(fitting: request) }
    // A stranger is not told which places there are.
    if !Self.areProbes(found) { try refuseStrangers(request) }
    let fitting = try found.get()
    let method = request.method == "HEAD" ? "GET" : request.method
    guard let match = fitting.first(where: { $0.0.method == method }) else {
      throw WrongMethod(method: request.method, allowed: Self.methods(of: fitting.map(\.0)))
    }
    try checkType(of: request, for: match.0)
    return match
  }

  /// The methods that a path has, and what a page of another origin may send, if it is one of those that may.
  func options(of request: HTTPRequest) throws -> HTTPResponse {
    let methods = Self.methods(of: try routes(fitting: request).map(\.0))
    var response = HTTPResponse(204, headers: ["Allow": methods])
    if let origin = request.headers["origin"], settings.corsOrigins.contains(origin) {
      response.headers["Access-Control-Allow-Methods"] = methods
      response.headers["Access-Control-Allow-Headers"] =
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id, traceparent, tracestate"
      response.headers["Access-Control-Max-Age"] = "600"
    }
    return response
  }

  static func methods(of routes: [Route]) -> String {
    var methods = Set(routes.map(\.method) + ["OPTIONS"])
    if methods.contains("GET") { methods.insert("HEAD") }
    return methods.sorted().joined(separator: ", ")
  }

  private func routes(fitting request: HTTPRequest) throws(HTTPError) -> [(Route, [String: String])] {
    guard var segments = request.segments else { throw HTTPError(400, "the path is not encoded correctly") }
    // A proxy may have removed the prefix, or left it there.
    let prefix = settings.prefix.split(separator: "/").map(String.init)
    if !prefix.isEmpty, segments.starts(with: prefix) { segments.removeFirst(prefix.count) }
    let fitting = Self.routes.compactMap { route in route.match(segments).map { (route, $0) } }
    guard !fitting.isEmpty else { throw HTTPError(404, "there is nothing at \(request.path.prefix(200))") }
    // A fixed segment is nearer than one in braces.
    let most = fitting.map { $0.0.pattern.count - $0.1.count }.max()
    return fitting.filter { $0.0.pattern.count - $0.1.count == most }
  }

  /// What probes ask for is no secret, and some name no host, or the address of a container.
  private static func areProbes(_ found: Result<[(Route, [String: String])], HTTPError>) -> Bool {
    guard case .success(let fitting) = found else { return false }
    return fitting.contains { $0.0.path == "/healthz" || $0.0.path == "/readyz" }
  }

  /// Whether the request calls this server by one of its names.
  func isCalledByName(_ request: HTTPRequest) -> Bool { settings.names.contains(Self.host(of: request).name) }

  /// The field `Host`, and the name in it without a port.
  private static func host(of request: HTTPRequest) -> (field: String, name: String) {
    let host = request.headers["host"]?.lowercased() ?? ""
    let end = host.hasPrefix("[") ? host.firstIndex(of: "]").map { host.index(after: $0) } : host.firstIndex(of: ":")
    return (host, String(end.map { host[..<$0] } ?? host[...]))
  }

  /// A browser that another site's page uses can reach this machine. Its requests are known by the name that they call,
  /// and by what browsers say of where they come from.
  private func refuseStrangers(_ request: HTTPRequest) throws(HTTPError) {
    let (host, name) = Self.host(of: request)
    // A page whose name was made to lead here has no token.
    guard settings.requiresTokens || settings.names.contains(name) else {
      throw HTTPError(403, "this server is not called \"\(name.prefix(200))\": name it with --name")
    }
    guard request.method != "GET", request.method != "HEAD" else { return }
    if let origin = request.headers["origin"] {
      let own = ["http://\(host)", "https://\(host)", settings.publicOrigin]
      guard own.contains(origin.lowercased()) || settings.corsOrigins.contains(origin) else {
        throw HTTPError(
          403, "requests from pages of another origin are refused: behind a proxy, --public-url names the page's own")
      }
      if settings.corsOrigins.contains(origin) { return }
    }
    if let site = request.headers["sec-fetch-site"], site != "same-origin", site != "none" {
      throw HTTPError(403, "requests from pages of another site are refused")
    }
  }

  private func checkType(of request: HTTPRequest, for route: Route) throws(HTTPError) {
    // Without a body there is nothing to misread: who sends it was looked at before.
    let isEmpty = request.headers["content-length"] ?? "0" == "0" && request.headers["transfer-encoding"] == nil
    let type = request.headers["content-type"]?.prefix { $0 != ";" && $0 != " " }.lowercased()
    // Some clients name this type where they send nothing.
    let isAbsent = isEmpty && type ?? "application/octet-stream" == "application/octet-stream"
    guard !route.accepts.isEmpty, route.needsBody || !isAbsent else { return }
    // A page of another site can send a form, but not this type.
    guard type.map(route.accepts.contains) == true else {
      throw HTTPError(415, "the body must be \(route.accepts.joined(separator: " or "))")
    }
    if let coding = request.headers["content-encoding"], coding.lowercased() != "identity" {
      throw HTTPError(415, "the body must not be coded (Content-Encoding: \(coding.prefix(50)))")
    }
  }
}

/// A path that is there, with a method that is not.
struct WrongMethod: Error {
  var method: String
  var allowed: String
}
