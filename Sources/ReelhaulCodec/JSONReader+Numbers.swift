extension JSONReader {
  /// Reads an integer within `bounds`, exactly. As in JSON Schema, `5.0` and `1.5e3` are integers.
  package mutating func integer<Integer: FixedWidthInteger>(
    _ bounds: ClosedRange<Integer> = Integer.min...Integer.max
  ) throws(DecodingFailure) -> Integer {
    let (range, isPlain) = try rawNumber()
    let isNegative = bytes[range.lowerBound] == UInt8(ascii: "-")
    let digits = (isNegative ? range.lowerBound + 1 : range.lowerBound)..<range.upperBound
    let value: Integer
    let overflows: Bool
    if isPlain {
      (value, overflows) = Self.integer(bytes[digits], isNegative)
    } else {
      guard let whole = whole(digits) else { throw DecodingFailure(.notAnInteger, offset: range.lowerBound) }
      (value, overflows) = Self.integer(whole, isNegative)
    }
    if bounds.lowerBound == Integer.min, bounds.upperBound == Integer.max {
      guard !overflows else { throw DecodingFailure(.integerOverflow, offset: range.lowerBound) }
    } else {
      guard !overflows, bounds.contains(value) else {
        throw invalid("expected an integer from \(bounds.lowerBound) to \(bounds.upperBound)")
      }
    }
    return value
  }

  /// The integer with these digits, and whether it does not fit.
  private static func integer<Integer: FixedWidthInteger>(
    _ digits: some Sequence<UInt8>, _ isNegative: Bool
  ) -> (Integer, overflows: Bool) {
    var value: Integer = 0
    var overflows = false
    for byte in digits {
      let digit = Integer(truncatingIfNeeded: byte - UInt8(ascii: "0"))
      let scaled = value.multipliedReportingOverflow(by: 10)
      let added =
        isNegative
        ? scaled.partialValue.subtractingReportingOverflow(digit) : scaled.partialValue.addingReportingOverflow(digit)
      value = added.partialValue
      overflows = overflows || scaled.overflow || added.overflow
    }
    return (value, overflows)
  }

  /// The digits of a number with a fraction or an exponent, as it would be written without them; nil unless it is whole.
  private func whole(_ number: Range<Int>) -> [UInt8]? {
    let text = bytes[number]
    let end = text.firstIndex { $0 | 0x20 == UInt8(ascii: "e") } ?? text.endIndex
    let point = text[..<end].firstIndex(of: UInt8(ascii: ".")) ?? end
    var exponent = 0
    // It cannot overflow, and no text is long enough to make up for such an exponent.
    for index in end..<text.endIndex where isDigit(index) {
      exponent = min(exponent * 10 + Int(text[index] - UInt8(ascii: "0")), 1 << 40)
    }
    if text[end...].contains(UInt8(ascii: "-")) { exponent = -exponent }
    let fraction = text[point..<end].dropFirst()
    var digits = Array(text[..<point]) + fraction
    let zeros = exponent - fraction.count
    guard zeros < 0 else {
      // Behind any other digit, 40 zeros are too many for every type.
      return digits + repeatElement(UInt8(ascii: "0"), count: min(zeros, 40))
    }
    guard digits.suffix(-zeros).allSatisfy({ $0 == UInt8(ascii: "0") }) else { return nil }
    digits.removeLast(min(-zeros, digits.count))
    return digits
  }

  /// Consumes a number and checks its grammar: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
  mutating func rawNumber() throws(DecodingFailure) -> (range: Range<Int>, isPlain: Bool) {
    var isPlain = true
    let first = try begin()
    guard first == UInt8(ascii: "-") || isDigit(position) else {
      throw failure(.expected(first == UInt8(ascii: "\"") ? "a number, without quotes" : "a value of another kind"))
    }
    let start = position
    if first == UInt8(ascii: "-") { position += 1 }
    if position < bytes.count, bytes[position] == UInt8(ascii: "0") {
      position += 1
      guard !isDigit(position) else { throw failure(.invalidNumber) }
    } else {
      try digits()
    }
    if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
      isPlain = false
      position += 1
      try digits()
    }
    if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
      isPlain = false
      position += 1
      if position < bytes.count, bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-") {
        position += 1
      }
      try digits()
    }
    return (start..<position, isPlain)
  }

  private mutating func digits() throws(DecodingFailure) {
    guard position < bytes.count else { throw failure(.unexpectedEnd) }
    guard isDigit(position) else { throw failure(.invalidNumber) }
    while isDigit(position) { position += 1 }
  }

  private func isDigit(_ offset: Int) -> Bool {
    offset < bytes.count && bytes[offset] &- UInt8(ascii: "0") < 10
  }
}
