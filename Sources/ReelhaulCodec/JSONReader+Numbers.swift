extension JSONReader {
  /// Reads an integer within `bounds`. Fractions and exponents are refused, even `1.0`.
  package mutating func integer<Integer: FixedWidthInteger>(
    _ bounds: ClosedRange<Integer> = Integer.min...Integer.max
  ) throws(DecodingFailure) -> Integer {
    let (range, isInteger) = try rawNumber()
    guard isInteger else { throw DecodingFailure(.notAnInteger, offset: range.lowerBound) }
    let isNegative = bytes[range.lowerBound] == UInt8(ascii: "-")
    var value: Integer = 0
    var overflows = false
    for index in (isNegative ? range.lowerBound + 1 : range.lowerBound)..<range.upperBound {
      let digit = Integer(truncatingIfNeeded: bytes[index] - UInt8(ascii: "0"))
      let scaled = value.multipliedReportingOverflow(by: 10)
      let added =
        isNegative
        ? scaled.partialValue.subtractingReportingOverflow(digit) : scaled.partialValue.addingReportingOverflow(digit)
      value = added.partialValue
      overflows = overflows || scaled.overflow || added.overflow
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

  /// Consumes a number and checks its grammar: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
  mutating func rawNumber() throws(DecodingFailure) -> (range: Range<Int>, isInteger: Bool) {
    var isInteger = true
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
      isInteger = false
      position += 1
      try digits()
    }
    if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
      isInteger = false
      position += 1
      if position < bytes.count, bytes[position] == UInt8(ascii: "+") || bytes[position] == UInt8(ascii: "-") {
        position += 1
      }
      try digits()
    }
    return (start..<position, isInteger)
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
