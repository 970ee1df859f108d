/// An answer. The server adds `Content-Length`, `Connection` and `Date`.
package struct HTTPResponse: Sendable {
  package enum Body: Sendable {
    case bytes([UInt8])
    case problem(HTTPProblem)
    /// Written while the task runs, until it returns or the client has gone: then the task is canceled.
    case stream(@Sendable (HTTPStream) async -> Void)
  }

  package var status: Int
  package var headers: HTTPFields
  package var body: Body

  package init(_ status: Int = 200, headers: HTTPFields = [:], body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  package init(_ status: Int = 200, headers: HTTPFields = [:], type: String, _ bytes: [UInt8]) {
    self.init(status, headers: headers, body: .bytes(bytes))
    self.headers["Content-Type"] = type
  }

  /// An answer of problem details, RFC 9457.
  package static func problem(_ status: Int, _ detail: String, code: String? = nil) -> HTTPResponse {
    HTTPResponse(HTTPProblem(status, detail, code: code))
  }

  package init(_ problem: HTTPProblem) {
    self.init(problem.status, headers: ["Content-Type": "application/problem+json"], body: .problem(problem))
  }

  /// The whole body; nil if it is a stream.
  package var bytes: [UInt8]? {
    switch body {
    case .bytes(let bytes): bytes
    case .problem(let problem): problem.json
    case .stream: nil
    }
  }

  /// RFC 9110, 15; empty if unknown.
  package static func reason(of status: Int) -> String { reasons[status] ?? "" }

  private static let reasons = [
    200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 207: "Multi-Status", 303: "See Other",
    304: "Not Modified", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
    412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type",
    417: "Expectation Failed", 422: "Unprocessable Content", 428: "Precondition Required", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented",
    503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
  ]
}
