/// The last digits of an identifier: enough to name one among millions. Identifiers of version 7 begin alike if they
/// were made at about the same time, so a beginning would not do.
package struct IDEnding: Hashable, Sendable {
  /// The fewest digits.
  package static let least = 6

  /// Hexadecimal, in lower case, without hyphens.
  package let digits: String

  /// Hyphens are ignored. Nil if the rest is not 6 to 32 hexadecimal digits.
  package init?(_ text: String) {
    let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
    guard Self.least...32 ~= digits.count, digits.allSatisfy({ PercentEncoding.hexDigit($0) != nil }) else {
      return nil
    }
    self.digits = String(decoding: digits, as: UTF8.self).lowercased()
  }

  package func matches(_ id: UniqueID) -> Bool {
    id.description.filter { $0 != "-" }.hasSuffix(digits)
  }
}

extension IDEnding: CustomStringConvertible {
  package var description: String { digits }
}
