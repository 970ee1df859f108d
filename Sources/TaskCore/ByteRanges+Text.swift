/// PostgreSQL's text form of an `int8multirange`: `{[0,5),[9,12)}`.
extension ByteRanges: LosslessStringConvertible {
  public var description: String {
    "{" + ranges.map { "[\($0.lowerBound),\($0.upperBound))" }.joined(separator: ",") + "}"
  }

  /// Reads the form that PostgreSQL writes for finite ranges; spaces are allowed between its parts.
  public init?(_ text: String) {
    var rest = text.filter { $0 != " " }[...].utf8
    func take(_ character: Unicode.Scalar) -> Bool {
      guard let first = rest.first, UInt32(first) == character.value else { return false }
      rest.removeFirst()
      return true
    }
    func number() -> Int64? {
      let digits = rest.prefix { $0 == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      rest = rest.dropFirst(digits.count)
      return Int64(Substring(digits))
    }

    self.init()
    guard take("{") else { return nil }
    if !take("}") {
      repeat {
        guard take("["), let lower = number(), take(","), let upper = number(), take(")"), lower <= upper else {
          return nil
        }
        insert(lower..<upper)
      } while take(",")
      guard take("}") else { return nil }
    }
    guard rest.isEmpty else { return nil }
  }
}
