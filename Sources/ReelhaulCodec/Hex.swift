/// Hexadecimal digits: either case when read, lower case when written.
package enum Hex {
  package static func value(of digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  package static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? value + UInt8(ascii: "0") : value - 10 + UInt8(ascii: "a")
  }

  /// The bytes that `digits` encode; nil if a character is not a digit or the number of digits is odd.
  package static func decode(_ digits: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard digits.count.isMultiple(of: 2) else { return nil }
    var output: [UInt8] = []
    output.reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = value(of: digits[index]), let low = value(of: digits[index + 1]) else { return nil }
      output.append(high << 4 | low)
    }
    return output
  }

  package static func decode(_ text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8 { decode($0) }
  }

  package static func encode(_ bytes: some Collection<UInt8>) -> String {
    String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
      var next = 0
      for byte in bytes {
        buffer[next] = digit(byte >> 4)
        buffer[next + 1] = digit(byte & 15)
        next += 2
      }
      return next
    }
  }

  /// The value of the four digits at `offset`, which have been checked before.
  static func quad(_ bytes: UnsafeBufferPointer<UInt8>, _ offset: Int) -> UInt16 {
    (offset..<offset + 4).reduce(0) { $0 << 4 | UInt16(value(of: bytes[$1]) ?? 0) }
  }
}
