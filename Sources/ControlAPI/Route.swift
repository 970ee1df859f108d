import HTTPServer
import ReelhaulCodec

/// One method of one path, and what it does. The table of routes is also what the description of the API is made of.
struct Route: Sendable {
  /// A field of the query.
  struct Field: Sendable {
    var name: String
    var help: String
    /// The allowed values; empty for any text.
    var values: [String] = []
  }

  /// A request that fits a route.
  struct Call: Sendable {
    var request: HTTPRequest
    /// The segments in braces, by name.
    var path: [String: String] = [:]
    /// The fields of the query; none is unknown, and none is given twice.
    var query: [String: String] = [:]
    /// Who sends it, for commands and their events; nil if nobody knows.
    var actor: String?

    /// Reads the body, an object with these members; an empty body is one without members. Members that are null are
    /// passed over, unless `withNulls`.
    func readBody(
      _ names: [String], withNulls: Bool = false,
      _ member: (inout JSONReader, JSONName) throws(DecodingFailure) -> Void
    ) throws(HTTPError) {
      do throws(DecodingFailure) {
        try JSONReader.read(request.body.isEmpty ? Array("{}".utf8) : request.body, refusingUnknownNames: true) {
          reader throws(DecodingFailure) in
          try reader.object(known: names, withNulls: withNulls, member)
        }
      } catch {
        throw HTTPError(422, "\(error)")
      }
    }
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
      guard field.values.isEmpty || field.values.contains(value) else {
        throw HTTPError(400, "\"\(name)\" must be one of \(field.values.joined(separator: ", "))")
      }
    }
    return values
  }
}
