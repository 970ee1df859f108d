import TaskCore

/// How S3 writes keys and query values in a URL. What is sent must be byte by byte what is signed.
package enum S3Encoding {
  /// Unreserved characters and `/` stay, every other byte becomes `%XX`.
  package static func path(_ text: String) -> String {
    PercentEncoding.encode(text.utf8) { $0 != UInt8(ascii: "/") && !isUnreserved($0) }
  }

  /// Unreserved characters stay, every other byte becomes `%XX`.
  package static func value(_ text: String) -> String {
    PercentEncoding.encode(text.utf8) { !isUnreserved($0) }
  }

  /// A key from a listing with `encoding-type=url`: `+` is a space. Nil if it is not encoded like this, or not UTF-8.
  package static func decode(_ text: String) -> String? {
    PercentEncoding.decode(text.utf8.lazy.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
      .flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// RFC 3986, 2.3.
  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }
}
