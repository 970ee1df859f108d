import TaskCore

/// How S3 writes keys and query values in a URL. What is sent must be byte by byte what is signed.
package enum S3Encoding {
  /// Unreserved characters and `/` stay, every other byte becomes `%XX`.
  package static func path(_ text: String) -> String {
    PercentEncoding.encode(text.utf8) { $0 != UInt8(ascii: "/") && !PercentEncoding.isUnreserved($0) }
  }

  /// Unreserved characters stay, every other byte becomes `%XX`.
  package static func value(_ text: String) -> String {
    PercentEncoding.encode(text.utf8)
  }

  /// A key from a listing with `encoding-type=url`: `+` is a space. Nil if it is not encoded like this, or not UTF-8.
  package static func decode(_ text: String) -> String? {
    PercentEncoding.decode(text.utf8.lazy.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
      .flatMap { String(validating: $0, as: UTF8.self) }
  }
}
