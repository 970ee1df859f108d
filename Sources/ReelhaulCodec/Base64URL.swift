/// Base64 for URLs, without padding (RFC 4648, 5).
package enum Base64URL {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  package static func encode(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: (bytes.count * 4 + 2) / 3) { text in
      var (count, bits, left) = (0, 0, 0)
      for byte in bytes {
        (bits, left) = (bits << 8 | Int(byte), left + 8)
        while left >= 6 {
          left -= 6
          text[count] = alphabet[bits >> left & 63]
          count += 1
        }
        bits &= 63
      }
      guard left > 0 else { return count }
      text[count] = alphabet[bits << (6 - left) & 63]
      return count + 1
    }
  }

  /// Nil for other characters, for a length that no bytes have, and for bits that belong to no byte.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    var (bits, left) = (0, 0)
    for character in text.utf8 {
      guard let digit = digit(character) else { return nil }
      (bits, left) = (bits << 6 | digit, left + 6)
      guard left >= 8 else { continue }
      left -= 8
      bytes.append(UInt8(bits >> left))
      bits &= 1 << left - 1
    }
    return left < 6 && bits == 0 ? bytes : nil
  }

  private static func digit(_ byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(byte - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(byte - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
