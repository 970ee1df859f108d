import HTTPServer
import ReelhaulClient
import TaskCore

/// The name of a request in logs, in problem details and in `X-Request-Id`.
enum RequestID {
  /// That of the request, if it is one that may stand in a log; otherwise a new one.
  static func of(_ request: HTTPRequest) -> String {
    guard let text = request.headers["x-request-id"], 1...128 ~= text.utf8.count,
      text.utf8.allSatisfy({ isPlain($0) })
    else { return UniqueID.make().description }
    return text
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
      UInt8(ascii: ":"), UInt8(ascii: "/"), UInt8(ascii: "="), UInt8(ascii: "+"):
      true
    default: false
    }
  }
}
