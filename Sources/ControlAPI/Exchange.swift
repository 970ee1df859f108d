import HTTPServer
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore

/// A request on its way through the API, and what all answers have in common.
struct Exchange: Sendable {
  let request: HTTPRequest
  let id: String
  let client: Client
  /// The span of this request, which is a part of the client's if that sends one; nil if nobody traces it.
  let trace: TraceContext?
  private let parent: TraceContext?
  private let api: ControlAPI
  private let begin = BootInstant.now

  init(_ request: HTTPRequest, _ api: ControlAPI) {
    self.request = request
    self.api = api
    id = RequestID.of(request)
    client = Client(request, api.settings)
    parent = request.headers["traceparent"].flatMap {
      TraceContext(traceparent: $0, tracestate: request.headers["tracestate"])
    }
    trace = api.tracer?.begin(below: parent) ?? parent
  }

  /// Whether a page of another origin sends it, that may.
  var isOfForeignPage: Bool { request.headers["origin"].map(api.settings.corsOrigins.contains) ?? false }

  private var isRead: Bool { request.method == "GET" || request.method == "HEAD" }

  /// What it shows of who sends it.
  var secret: TokenSecret? {
    if let field = request.headers["authorization"] {
      return field.split(separator: " ", maxSplits: 1).last.flatMap { TokenSecret(String($0)) }
    }
    return session.flatMap { TokenSecret($0) }
  }

  /// The name of the cookie of this server's sessions.
  var cookie: String {
    let origin = api.settings.publicOrigin
    return Session.cookie(
      at: origin.isEmpty ? request.headers["host"] ?? "" : origin,
      isOwn: client.isSecure && api.settings.prefix.isEmpty)
  }

  /// The secret of the session that it shows.
  var session: String? { Session.secret(in: request, cookie) }

  func response(for error: any Error) -> HTTPResponse {
    switch error {
    case let error as HTTPError:
      var response = HTTPResponse.problem(error.status, error.message, code: error.code)
      if error.status == 401 { response.headers["WWW-Authenticate"] = "Bearer realm=\"reelhaul\"" }
      return response
    case let error as HTTPProblem: return HTTPResponse(error)
    case let error as WrongMethod:
      var response = HTTPResponse.problem(405, "\(error.method) is not possible here")
      response.headers["Allow"] = error.allowed
      return response
    case let error as TooMany:
      var response = HTTPResponse.problem(429, "there are too many requests: send the next one later")
      response.headers["Retry-After"] = "\(max(1, Int(error.wait.milliseconds + 999) / 1000))"
      return response
    case let error as Unsent:
      return unavailable(error.problem, error.cause, asksForRepetition: error.asksForRepetition)
    case let error as KafkaError: return unavailable(HTTPProblem(503, "Kafka cannot be read"), error)
    case let error as StoreError where error.storesNothing && !isRead:
      return unavailable(HTTPProblem(503, "the change cannot be stored"), error)
    case is CancellationError: return .problem(503, "the request was canceled")
    default: return unavailable(HTTPProblem(503, "the state of the fleet cannot be read"), error)
    }
  }

  /// Most errors name addresses within the network. Where tokens are needed, and for a page whose name was made to lead
  /// here, only the log has these.
  private func unavailable(_ problem: HTTPProblem, _ error: any Error, asksForRepetition: Bool = true) -> HTTPResponse {
    let whole = "\(problem.detail): \(error)"
    api.log?.warning("a request cannot be answered", ["request": .text(id), "error": .text(whole)])
    var problem = problem
    let isForAll = (error as? StoreError)?.isAboutSchema == true
    if isForAll || !api.settings.requiresTokens && api.isCalledByName(request) { problem.detail = whole }
    var response = HTTPResponse(problem)
    if asksForRepetition { response.headers["Retry-After"] = "2" }
    return response
  }

  /// With what every answer has: an entity tag, the coding that the client can read, and the fields for browsers.
  func finished(_ response: HTTPResponse) -> HTTPResponse {
    var response = response
    response.headers["X-Request-Id"] = id
    if case .problem(var problem) = response.body {
      let code = problem.code ?? ProblemCode(status: problem.status).rawValue
      problem.code = code
      problem.type = "urn:reelhaul:problem:\(code)"
      problem.requestID = id
      response.body = .problem(problem)
    }
    tag(&response)
    dress(&response)
    return response
  }

  private func tag(_ response: inout HTTPResponse) {
    guard response.status == 200, isRead, case .bytes(let bytes) = response.body else { return }
    let tag = response.headers["ETag"] ?? EntityTag.of(bytes)
    let isCompressible = Compressor.takes(bytes, response.headers["content-type"])
    let compressed =
      isCompressible && Compressor.isAccepted(request.headers["accept-encoding"])
      ? api.compressor.compressed(bytes, tag) : nil
    response.headers["ETag"] = compressed == nil ? tag : EntityTag.compressed(tag)
    if isCompressible { response.headers.append("Vary", "Accept-Encoding") }
    if EntityTag.isKnown(tag, in: request.headers["if-none-match"]) {
      response.status = 304
      response.headers["Content-Type"] = nil
      response.body = .bytes([])
    } else if let compressed {
      response.headers["Content-Encoding"] = "gzip"
      response.body = .bytes(compressed)
    }
  }

  private func dress(_ response: inout HTTPResponse) {
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] =
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
      + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    response.headers["Referrer-Policy"] = "no-referrer"
    if response.headers["Cache-Control"] == nil { response.headers["Cache-Control"] = "private, no-cache" }
    if let place = response.headers["Location"], place.hasPrefix("/") {
      response.headers["Location"] = api.settings.prefix + place
    }
    guard !api.settings.corsOrigins.isEmpty else { return }
    response.headers.append("Vary", "Origin")
    guard let origin = request.headers["origin"], api.settings.corsOrigins.contains(origin) else { return }
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] = "ETag, Location, Retry-After, X-Request-Id"
  }

  /// Ends the span of a request to one of the API's routes; a stream's with its first byte.
  func record(_ response: HTTPResponse, route: String?) {
    guard let route, route.hasPrefix("/v1/"), let tracer = api.tracer, let trace else { return }
    let end = Clocks.realtimeMicroseconds()
    let time = (BootInstant.now - begin).microseconds
    tracer.record(
      Span(
        trace, parent: parent?.spanID, name: "\(request.method) \(route)", kind: .server,
        start: Timestamp(microseconds: end - time), end: Timestamp(microseconds: end),
        attributes: [
          ("http.request.method", .text(request.method)), ("http.route", .text(route)),
          ("url.path", .text(String(request.path.prefix(200)))),
          ("http.response.status_code", .integer(response.status)), ("reelhaul.request.id", .text(id)),
        ],
        error: response.status >= 500 ? "it answered \(response.status)" : nil),
      of: trace)
  }

  /// Commands and what went wrong are told; other requests only where everything is.
  func log(_ response: HTTPResponse, actor: String?) {
    guard let log = api.log else { return }
    let level: LogLevel = response.status >= 500 ? .warning : isRead ? .debug : .info
    guard level >= log.level else { return }
    let fields: [(String, LogValue)] = [
      ("request", .text(id)), ("method", .text(request.method)), ("path", .text(String(request.path.prefix(200)))),
      ("status", .integer(response.status)), ("actor", .text(actor ?? "")), ("client", .text(client.address)),
      ("milliseconds", .integer(Int((BootInstant.now - begin).milliseconds))),
    ]
    log.log(level, "request", fields: fields + (trace?.logFields ?? []))
  }
}
