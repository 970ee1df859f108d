/// The value of a `Content-Range` field (RFC 9110, 14.4), in bytes.
struct ContentRange: Hashable {
  /// `nil` in `bytes */N`.
  var range: Range<Int64>?
  /// `nil` if the server sends `*`.
  var total: Int64?

  /// Accepts `bytes a-b/n`, `bytes a-b/*` and `bytes */n`. Returns `nil` for any other text.
  init?(_ text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: true)
    guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
    let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    if parts[1] != "*" {
      guard let total = Self.number(parts[1]) else { return nil }
      self.total = total
    }
    guard parts[0] != "*" else {
      guard total != nil else { return nil }
      return
    }
    let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard bounds.count == 2, let first = Self.number(bounds[0]), let last = Self.number(bounds[1]), first <= last,
      last < Int64.max, last < total ?? Int64.max
    else { return nil }
    range = first..<last + 1
  }

  /// Accepts only digits: no sign, no white space.
  static func number(_ text: Substring) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }) else {
      return nil
    }
    return Int64(text)
  }
}
