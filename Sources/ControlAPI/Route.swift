import HTTPServer

/// One method of one path, and what it does. The table of routes is also what the description of the API is made of.
struct Route: Sendable {
  /// A field of the query.
  struct Field: Sendable {
    var name: String
    var help: String
    /// The allowed values; empty for any text.
    var values: [String] = []
    /// Whether several values may be given, separated by commas.
    var isList = false
  }

  /// A request that fits a route.
  struct Call: Sendable {
    var request: HTTPRequest
    /// The segments in braces, by name.
    var path: [String: String] = [:]
    /// The fields of the query; none is unknown, and none is given twice.
    var query: [String: String] = [:]
  }

  let method: String
  /// Such as `/v1/tasks/{id}`.
  let path: String
  let summary: String
  var query: [Field] = []
  /// Whether the query is the page's own, which its script reads.
  var hasAnyQuery = false
  /// The media types of the body; empty if there is none.
  var accepts: [String] = []
  /// The statuses beside those that every request may get.
  var answers: [Int] = [200]
  let run: @Sendable (ControlAPI, Call) async throws -> HTTPResponse

  /// The values of the segments in braces; nil if the path is another.
  func match(_ segments: [String]) -> [String: String]? {
    let pattern = path.split(separator: "/")
    guard pattern.count == segments.count else { return nil }
    var values: [String: String] = [:]
    for (part, segment) in zip(pattern, segments) {
      if part.hasPrefix("{") {
        values[String(part.dropFirst().dropLast())] = segment
      } else if part != segment {
        return nil
      }
    }
    return values
  }

  /// Throws ``HTTPError`` for an unknown field, one that is there twice, and a wrong value.
  func fields(of request: HTTPRequest) throws(HTTPError) -> [String: String] {
    var values: [String: String] = [:]
    guard !hasAnyQuery else { return values }
    for (name, value) in try request.query {
      guard let field = query.first(where: { $0.name == name }) else {
        throw HTTPError(400, "\(path) has no query field \"\(name)\"")
      }
      guard values.updateValue(value, forKey: name) == nil else {
        throw HTTPError(400, "the query field \"\(name)\" is there twice")
      }
      let words =
        field.isList ? value.split(separator: ",", omittingEmptySubsequences: false).map(String.init) : [value]
      guard field.values.isEmpty || words.allSatisfy(field.values.contains) else {
        let choices = field.values.joined(separator: ", ")
        throw HTTPError(400, "\"\(name)\" must be \(field.isList ? "of" : "one of") \(choices)")
      }
    }
    return values
  }
}
