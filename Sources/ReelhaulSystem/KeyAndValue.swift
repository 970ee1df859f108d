extension StringProtocol {
  /// What is before the first "=", and what is behind it; nil without one. Not by Characters, of which "=" and a mark that
  /// combines with it are one.
  package var keyAndValue: (key: String, value: String)? {
    guard let equals = utf8.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    return (String(self[..<equals]), String(self[utf8.index(after: equals)...]))
  }
}
