extension JSONReader {
  /// Reads a string of at most `limit` bytes of UTF-8.
  package mutating func string(limit: Int = 1 << 20) throws(DecodingFailure) -> String {
    try text(limit: limit) { String(decoding: $0, as: UTF8.self) }
  }

  /// Reads a string of at most `limit` bytes and lends its UTF-8, without escapes, to `body`.
  package mutating func text<Value>(
    limit: Int = 1 << 20, _ body: (UnsafeBufferPointer<UInt8>) -> Value
  ) throws(DecodingFailure) -> Value {
    guard try begin() == UInt8(ascii: "\"") else { throw failure(.expected("a string")) }
    let raw = try rawString()
    guard raw.isEscaped else {
      guard raw.range.count <= limit else { throw DecodingFailure(.stringTooLong(limit: limit), offset: valueStart) }
      return body(UnsafeBufferPointer(rebasing: bytes[raw.range]))
    }
    let unescaped = unescape(raw)
    guard unescaped.count <= limit else { throw DecodingFailure(.stringTooLong(limit: limit), offset: valueStart) }
    return unescaped.withUnsafeBufferPointer(body)
  }

  /// The position of a string's bytes, without the quotes.
  struct RawString {
    var range: Range<Int>
    var isEscaped: Bool
  }

  /// Consumes and checks a string. Its opening quote must be the next byte.
  mutating func rawString() throws(DecodingFailure) -> RawString {
    position += 1
    let start = position
    var isEscaped = false
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return RawString(range: start..<(position - 1), isEscaped: isEscaped)
      case UInt8(ascii: "\\"):
        isEscaped = true
        try checkEscape()
      case 0..<0x20: throw failure(.unescapedControlCharacter)
      default: position += 1
      }
    }
    throw failure(.unexpectedEnd)
  }

  private mutating func checkEscape() throws(DecodingFailure) {
    guard position + 1 < bytes.count else { throw failure(.unexpectedEnd) }
    switch bytes[position + 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      position += 2
    case UInt8(ascii: "u"):
      switch try codeUnit(at: position) {
      case 0xD800..<0xDC00:
        guard position + 7 < bytes.count, bytes[position + 6] == UInt8(ascii: "\\"),
          bytes[position + 7] == UInt8(ascii: "u"), case 0xDC00..<0xE000 = try codeUnit(at: position + 6)
        else { throw failure(.loneSurrogate) }
        position += 12
      case 0xDC00..<0xE000: throw failure(.loneSurrogate)
      default: position += 6
      }
    default: throw failure(.invalidEscape)
    }
  }

  /// The UTF-16 code unit of the `\uXXXX` at `offset`.
  private func codeUnit(at offset: Int) throws(DecodingFailure) -> UInt16 {
    guard offset + 6 <= bytes.count else { throw DecodingFailure(.unexpectedEnd, offset: bytes.count) }
    var unit: UInt16 = 0
    for index in (offset + 2)..<(offset + 6) {
      guard let digit = Hex.value(of: bytes[index]) else { throw DecodingFailure(.invalidEscape, offset: offset) }
      unit = unit << 4 | UInt16(digit)
    }
    return unit
  }

  /// The bytes of a checked string, with its escapes replaced.
  func unescape(_ raw: RawString) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(raw.range.count)
    var index = raw.range.lowerBound
    while index < raw.range.upperBound {
      guard bytes[index] == UInt8(ascii: "\\") else {
        output.append(bytes[index])
        index += 1
        continue
      }
      switch bytes[index + 1] {
      case UInt8(ascii: "b"): output.append(0x08)
      case UInt8(ascii: "f"): output.append(0x0C)
      case UInt8(ascii: "n"): output.append(0x0A)
      case UInt8(ascii: "r"): output.append(0x0D)
      case UInt8(ascii: "t"): output.append(0x09)
      case UInt8(ascii: "u"):
        let (scalar, length) = scalar(at: index)
        output.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
        index += length
        continue
      case let same: output.append(same)
      }
      index += 2
    }
    return output
  }

  /// The scalar of a checked `\uXXXX` or surrogate pair at `offset`, and the number of bytes that it takes.
  private func scalar(at offset: Int) -> (Unicode.Scalar, Int) {
    let first = UInt32(Hex.quad(bytes, offset + 2))
    guard (0xD800..<0xDC00).contains(first) else { return (Unicode.Scalar(first) ?? "\u{FFFD}", 6) }
    let second = UInt32(Hex.quad(bytes, offset + 8))
    return (Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)) ?? "\u{FFFD}", 12)
  }
}
