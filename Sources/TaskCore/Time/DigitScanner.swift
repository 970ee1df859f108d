/// Reads texts of fixed-width numbers, such as times, from the front.
struct DigitScanner {
  private var rest: Substring.UTF8View

  init(_ text: String) {
    rest = text[...].utf8
  }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ text: StaticString) -> Bool {
    let expected = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    guard rest.starts(with: expected) else { return false }
    rest.removeFirst(expected.count)
    return true
  }

  /// A number of exactly `width` digits.
  mutating func number(_ width: Int) -> Int64? {
    guard rest.count >= width else { return nil }
    var value: Int64 = 0
    for byte in rest.prefix(width) {
      guard let digit = Self.digit(byte) else { return nil }
      value = value * 10 + digit
    }
    rest.removeFirst(width)
    return value
  }

  /// The digits after a decimal point, at least one, in millionths. Digits after the sixth are ignored.
  mutating func millionths() -> Int64? {
    var value: Int64 = 0
    var unit: Int64 = 100_000
    var isEmpty = true
    while let first = rest.first, let digit = Self.digit(first) {
      value += digit * unit
      unit /= 10
      isEmpty = false
      rest.removeFirst()
    }
    return isEmpty ? nil : value
  }

  private static func digit(_ byte: UInt8) -> Int64? {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) ? Int64(byte - UInt8(ascii: "0")) : nil
  }
}
