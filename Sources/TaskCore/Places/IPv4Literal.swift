/// An IPv4 address as a URL's host, in the forms that libcurl reads: `192.0.2.7`, and the old forms of inet_aton with
/// fewer, octal or hexadecimal numbers (`0x7f.1`, `2130706433`).
///
/// Written by hand, because TaskCore imports only the standard library. A test compares the dotted form with
/// `inet_pton`.
enum IPv4Literal {
  typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

  /// Whether a label consists of digits, or of hexadecimal digits after `0x`. If the last label of a host is such a
  /// number, the host must be an address (WHATWG, "ends in a number"): no other name with this ending can be resolved.
  static func isNumber(_ label: Bytes) -> Bool {
    guard let first = label.first, digit(first, base: 10) != nil else { return false }
    return label.allSatisfy { digit($0, base: 10) != nil }
      || hexadecimal(label)?.allSatisfy { digit($0, base: 16) != nil } == true
  }

  static func isAddress(_ host: Bytes) -> Bool {
    var rest = host
    var parts = 0
    while true {
      let part = rest.prefix { $0 != UInt8(ascii: ".") }
      rest = rest[part.endIndex...].dropFirst()
      parts += 1
      let isLast = part.endIndex == host.endIndex
      // The last number fills all remaining bytes.
      guard parts <= 4, let number = number(part), number < (isLast ? 1 << (8 * (5 - parts)) : 256) else {
        return false
      }
      if isLast { return true }
    }
  }

  /// Whether it is four decimal numbers without leading zeros: the only form allowed at the end of an IPv6 address.
  static func isDotted(_ text: Bytes) -> Bool {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count == 4
      && parts.allSatisfy { part in
        guard part.count == 1 || part.first != UInt8(ascii: "0"), let number = number(part, base: 10) else {
          return false
        }
        return number < 256
      }
  }

  /// Reads a number like strtoul, which takes the base from the prefix.
  private static func number(_ part: Bytes) -> UInt64? {
    if let digits = hexadecimal(part) { return number(digits, base: 16) }
    return number(part, base: part.first == UInt8(ascii: "0") ? 8 : 10)
  }

  /// Returns `nil` if the text is not a number, or if it is greater than every address.
  private static func number(_ digits: Bytes, base: UInt64) -> UInt64? {
    var number: UInt64 = 0
    for byte in digits {
      guard let digit = digit(byte, base: base) else { return nil }
      number = number * base + digit
      guard number <= UInt64(UInt32.max) else { return nil }
    }
    return digits.isEmpty ? nil : number
  }

  private static func hexadecimal(_ text: Bytes) -> Bytes? {
    let digits = text.dropFirst(2)
    return text.first == UInt8(ascii: "0") && text.dropFirst().first.map { $0 | 0x20 } == UInt8(ascii: "x")
      ? digits : nil
  }

  private static func digit(_ byte: UInt8, base: UInt64) -> UInt64? {
    PercentEncoding.hexDigit(byte).map { UInt64($0) }.flatMap { $0 < base ? $0 : nil }
  }
}
