/// Percent-encoding (RFC 3986, 2.1).
package enum PercentEncoding {
  /// The decoded bytes; `nil` if a `%` is not followed by two hexadecimal digits.
  package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var output: [UInt8] = []
    var iterator = text.makeIterator()
    while let byte = iterator.next() {
      guard byte == UInt8(ascii: "%") else {
        output.append(byte)
        continue
      }
      guard let high = iterator.next().flatMap(hexDigit), let low = iterator.next().flatMap(hexDigit) else {
        return nil
      }
      output.append(high << 4 | low)
    }
    return output
  }

  /// Checks that a URL has no space, no control character, no `%` without two digits, and no encoded NUL. Errors name
  /// the byte, counted from `start`.
  static func check(_ text: some RandomAccessCollection<UInt8>, from start: Int = 0) throws(InvalidURL) {
    var offset = start
    for index in text.indices {
      switch text[index] {
      case 0...0x20, 0x7F: throw .character(offset: offset)
      case UInt8(ascii: "%"):
        guard let decoded = decode(text[index...].prefix(3)) else { throw .percentEncoding(offset: offset) }
        guard decoded != [0] else { throw .encodedNUL(offset: offset) }
      default: break
      }
      offset += 1
    }
  }

  /// Encodes the bytes of `text` for which `mustEncode` returns true; without it, all but unreserved characters.
  package static func encode(
    _ text: some Collection<UInt8>, where mustEncode: (UInt8) -> Bool = { !isUnreserved($0) }
  ) -> String {
    guard text.contains(where: mustEncode) else { return String(decoding: text, as: UTF8.self) }
    var output: [UInt8] = []
    for byte in text {
      if mustEncode(byte) {
        output += [UInt8(ascii: "%"), upperDigit(byte >> 4), upperDigit(byte & 15)]
      } else {
        output.append(byte)
      }
    }
    return String(decoding: output, as: UTF8.self)
  }

  /// RFC 3986, 2.3.
  package static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }

  /// The value of a hexadecimal digit. ReelhaulCodec has the same eight lines, because neither module imports the
  /// other. The standard library's `Character.hexDigitValue` takes 24 ns for a digit instead of 2, and an id has 32
  /// digits.
  static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  private static func upperDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? value + UInt8(ascii: "0") : value - 10 + UInt8(ascii: "A")
  }
}
