/// A number of bytes, as people read and write it.
package struct ByteCount: Hashable, Sendable, CustomStringConvertible {
  package let bytes: Int64

  package init(_ bytes: Int64) {
    self.bytes = bytes
  }

  private static let binary = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

  /// Parses `500`, `10MiB`, `1.5 GB`, `64k`, in either case: powers of 1024 with an `i`, powers of 1000 without. Nil
  /// for other text, negative numbers, parts of a byte, and numbers that do not fit.
  package init?(_ text: String) {
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let unit = text.dropFirst(number.count).drop { $0 == " " }.lowercased()
    guard let first = number.first, first != ".", number.last != ".", text.last != " " else { return nil }
    guard let factor = Self.factor(of: unit) else { return nil }
    if let whole = Int64(number) {
      let (product, overflow) = whole.multipliedReportingOverflow(by: factor)
      guard !overflow else { return nil }
      self.init(product)
    } else {
      guard factor > 1, let fraction = Double(number), fraction * Double(factor) < 0x1p63 else { return nil }
      self.init(Int64((fraction * Double(factor)).rounded()))
    }
  }

  private static func factor(of unit: String) -> Int64? {
    guard let letter = unit.first, unit != "b" else { return 1 }
    guard let power = ["k", "m", "g", "t", "p"].firstIndex(of: String(letter)).map({ $0 + 1 }) else { return nil }
    let base: Int64
    switch unit.dropFirst() {
    case "", "b": base = 1000
    case "i", "ib": base = 1024
    default: return nil
    }
    return (0..<power).reduce(1) { product, _ in product * base }
  }

  /// About three significant digits: `512 B`, `1.5 MiB`, `104 MiB`.
  package var description: String {
    var value = Double(bytes)
    var unit = 0
    while abs(value) >= 999.5, unit + 1 < Self.binary.count {
      value /= 1024
      unit += 1
    }
    return unit == 0 ? "\(bytes) B" : "\(Self.rounded(value)) \(Self.binary[unit])"
  }

  private static func rounded(_ value: Double) -> String {
    if abs(value) >= 99.95 { return "\(Int64(value.rounded()))" }
    let tenths = Int64((value * 10).rounded())
    return "\(tenths / 10).\(abs(tenths % 10))"
  }

  /// As a number of bytes per second: `12.3 MiB/s`.
  package var rate: String { "\(self)/s" }
}
