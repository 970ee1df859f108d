import ReelhaulCodec

/// Problem details, RFC 9457.
package struct HTTPProblem: Error, Sendable {
  package var status: Int
  package var detail: String
  /// `about:blank` if the status says it all.
  package var type = "about:blank"
  /// A word for programs.
  package var code: String?
  package var requestID: String?
  /// Writes further members.
  package var members: @Sendable (inout JSONWriter) -> Void = { _ in }

  package init(_ status: Int, _ detail: String, code: String? = nil) {
    self.status = status
    self.detail = detail
    self.code = code
  }

  package var json: [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("type", type)
        json.member("code", code)
        json.member("title", HTTPResponse.reason(of: status))
        json.member("status", status)
        json.member("detail", detail)
        json.member("requestId", requestID)
        members(&json)
      }
    }
  }
}
