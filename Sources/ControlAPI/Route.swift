import HTTPServer
import TaskCore
import TaskStore

/// One method of one path, and what it does. The table of routes makes the router, the checks of requests, who may call
/// what, and the description of the API.
///
/// To add a route, write it in a file of its subject and add it to ``ControlAPI/routes``:
///
///     Route(
///       method: "GET", path: "/v1/failures", summary: "Failed tasks by error and host.", needs: .read,
///       query: [.init(name: "queue", help: "Only tasks of this queue.", schema: .text(length: 1...100))],
///       gives: .object([.must("failures", .list(failure))])
///     ) { api, call in … }
///
/// - `needs` is the scope of the token that may call it.
/// - `isPerQueue: true` says that the route itself heeds `call.principal.queues`: it shows nothing of other queues, and
///   answers 404 for their tasks. Without it, a token that is limited to queues gets 403.
/// - `call.principal.actor` is who a command comes from.
/// - `takes` is the schema of the JSON body, `gives` that of every JSON answer with a status of 2xx in `answers`.
///   Statuses that any route may have (400, 401, 403, 408, 413, 414, 415, 429, 431, 503, 504) need not be named.
/// - Fields of the query and segments of the path that have a schema are checked by it before `run`.
struct Route: Sendable {
  /// A field of the query.
  struct Field: Sendable {
    var name: String
    var help: String
    /// The schema of one value.
    var schema: JSONSchema = .text()
    /// Whether several values may be given, separated by commas.
    var isList = false

    /// The schema of the field.
    var whole: JSONSchema { isList ? .list(schema, least: 1, most: 100) : schema }
  }

  /// A request that fits a route, of a principal who may send it.
  struct Call: Sendable {
    var request: HTTPRequest
    /// The segments in braces, by name.
    var path: [String: String] = [:]
    /// The fields of the query; none is unknown, and none is given twice.
    var query: [String: String] = [:]
    var principal = Principal.everybody
    /// The span of the request, if it is in a trace.
    var trace: TraceContext?

    /// The segment `{id}`, which its schema has checked.
    var id: UniqueID {
      get throws(HTTPError) {
        guard let id = path["id"].flatMap({ UniqueID($0) }) else { throw HTTPError(400, "the path has no id") }
        return id
      }
    }
  }

  /// The segments of a path.
  enum Segment: Sendable, Hashable {
    case fixed(String)
    /// A segment in braces.
    case named(String)
  }

  let method: String
  /// Such as `/v1/tasks/{id}`.
  let path: String
  let summary: String
  let need: Need
  let isPerQueue: Bool
  /// The schemas of the segments in braces; any text otherwise.
  let segments: [String: JSONSchema]
  let query: [Field]
  /// Header fields that only some routes heed.
  let headers: [Field]
  /// Whether the query is the page's own, which its script reads.
  let hasAnyQuery: Bool
  /// The media types of the body; empty if there is none.
  let accepts: [String]
  /// The JSON body.
  let takes: JSONSchema?
  /// A JSON body, as an example. If it is an empty object, the body may be left out.
  let example: String?
  /// The statuses beside those that every request may get.
  let answers: [Int]
  /// The JSON answer; nil if the answer is another medium or has no schema.
  let gives: JSONSchema?
  /// JSON answers that are no problem details although their status is an error, by status.
  let refuses: [Int: JSONSchema]
  /// The media type of the answer.
  let medium: String
  let pattern: [Segment]
  let run: @Sendable (ControlAPI, Call) async throws -> HTTPResponse

  init(
    method: String, path: String, summary: String, needs: Need, isPerQueue: Bool = false,
    segments: [String: JSONSchema] = [:], query: [Field] = [], headers: [Field] = [], hasAnyQuery: Bool = false,
    accepts: [String] = [],
    takes: JSONSchema? = nil, example: String? = nil, answers: [Int] = [200], gives: JSONSchema? = nil,
    refuses: [Int: JSONSchema] = [:], medium: String = "application/json",
    run: @escaping @Sendable (ControlAPI, Call) async throws -> HTTPResponse
  ) {
    self.method = method
    self.path = path
    self.summary = summary
    need = needs
    self.isPerQueue = isPerQueue
    self.segments = segments
    self.query = query
    self.headers = headers
    self.hasAnyQuery = hasAnyQuery
    self.accepts = accepts
    self.takes = takes
    self.example = example
    self.answers = answers
    self.gives = gives
    self.refuses = refuses
    self.medium = medium
    pattern = path.split(separator: "/").map { part in
      part.hasPrefix("{") ? .named(String(part.dropFirst().dropLast())) : .fixed(String(part))
    }
    self.run = run
  }

  var needsBody: Bool { !accepts.isEmpty && example != "{}" }

  /// The values of the segments in braces; nil if the path is another.
  func match(_ segments: [String]) -> [String: String]? {
    guard pattern.count == segments.count else { return nil }
    var values: [String: String] = [:]
    for (part, segment) in zip(pattern, segments) {
      switch part {
      case .fixed(let text): guard text == segment else { return nil }
      case .named(let name): values[name] = segment
      }
    }
    return values
  }

  /// Throws ``HTTPError`` for a segment in braces that does not fit its schema.
  func check(_ values: [String: String]) throws(HTTPError) {
    for (name, schema) in segments {
      guard let value = values[name], let problem = schema.problem(ofText: value) else { continue }
      // What is not among a few words is not there; what is not even an id is a mistake.
      var status = 400
      if case .text(let values, _, _, _) = schema.form, !values.isEmpty { status = 404 }
      throw HTTPError(status, "\"\(value.prefix(100))\" in the path must be \(problem)")
    }
  }

  /// Throws ``HTTPError`` for an unknown field, one that is there twice, and a wrong value.
  func fields(of request: HTTPRequest) throws(HTTPError) -> [String: String] {
    var values: [String: String] = [:]
    guard !hasAnyQuery else { return values }
    for (name, value) in try request.query {
      guard let field = query.first(where: { $0.name == name }) else {
        throw HTTPError(400, "\(path) has no query field \"\(name.prefix(100))\"")
      }
      guard values.updateValue(value, forKey: name) == nil else {
        throw HTTPError(400, "the query field \"\(name)\" is there twice")
      }
      if let problem = field.whole.problem(ofText: value) { throw HTTPError(400, "\"\(name)\" must be \(problem)") }
    }
    return values
  }
}
