import HTTPServer
import ReelhaulCodec
import ReelhaulMessages

extension Route {
  /// How many bytes a body may have. Who shows nothing gets little of what all bodies share.
  var bodyLimit: Int { need == .nothing ? 4 << 10 : 4 << 20 }
}

extension Route.Call {
  /// Reads the body, an object with these members; an empty body is one without members. Members that are null are passed
  /// over, unless `withNulls`.
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
      throw HTTPError(422, "\(error)", code: Rejection(error).code.problem.rawValue)
    }
  }
}

extension HTTPError {
  /// The body lacks a member; `help` says what it is.
  static func missing(_ name: String, _ help: String) -> HTTPError {
    HTTPError(422, "\"\(name)\" is missing: \(help)", code: ProblemCode.missingField.rawValue)
  }
}
