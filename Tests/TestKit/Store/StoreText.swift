import Glibc

/// The encodings of S3's and tus's texts.
enum StoreText {
  static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// The bytes of a text in Base64; nil if it is none.
  static func base64(_ text: String) -> [UInt8]? {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    let digits = text.utf8.prefix { $0 != UInt8(ascii: "=") }
    guard text.utf8.count % 4 == 0, text.utf8.count - digits.count < 3 else { return nil }
    var bytes: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for digit in digits {
      guard let value = alphabet.firstIndex(of: digit) else { return nil }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }

  static func percentDecoded(_ text: some StringProtocol) -> String {
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    var next = 0
    while next < bytes.count {
      if bytes[next] == UInt8(ascii: "%"), next + 2 < bytes.count,
        let byte = UInt8(String(decoding: bytes[next + 1...next + 2], as: UTF8.self), radix: 16)
      {
        result.append(byte)
        next += 3
      } else {
        result.append(bytes[next])
        next += 1
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Everything but unreserved characters and slashes encoded, as `encoding-type=url` has it.
  static func percentEncoded(_ text: String) -> String {
    text.utf8.map { byte in
      let character = Character(UnicodeScalar(byte))
      return character.isASCII && (character.isLetter || character.isNumber || "-._~/".contains(character))
        ? String(character) : "%" + hex([byte]).uppercased()
    }.joined()
  }

  /// The names and values of a query, decoded; a name without a value has "".
  static func query(_ text: some StringProtocol) -> [String: String] {
    var query: [String: String] = [:]
    for pair in text.split(separator: "&") {
      let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      query[percentDecoded(sides[0])] = sides.count > 1 ? percentDecoded(sides[1]) : ""
    }
    return query
  }

  /// A date as in HTTP's headers, or as in S3's XML.
  static func date(_ seconds: Int, format: String = "%a, %d %b %Y %H:%M:%S GMT") -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    var text = [CChar](repeating: 0, count: 64)
    let count = strftime(&text, text.count, format, &parts)
    return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  static func isoDate(_ seconds: Int) -> String { date(seconds, format: "%Y-%m-%dT%H:%M:%S.000Z") }
}
