extension WebURL {
  public init(_ text: String) throws(InvalidURL) {
    let (scheme, rest) = try Self.scheme(text)
    try Self.check(text.utf8)
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    let (host, port) = try Self.hostAndPort(authority)
    let target = rest[authority.endIndex...].prefix { $0 != "#" }
    let path = target.prefix { $0 != "?" }
    let query = path.endIndex == target.endIndex ? nil : target[target.index(after: path.endIndex)...]
    self.init(
      scheme: scheme, host: host, port: port,
      path: path.first == "/" ? Self.encode(path) : "/", query: query.map(Self.encode))
  }

  private static func scheme(_ text: String) throws(InvalidURL) -> (Scheme, Substring) {
    guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { throw .noScheme }
    let name = text[..<colon].lowercased()
    guard name.utf8.first.map(isLetter) == true, name.utf8.count <= 32,
      name.utf8.allSatisfy({ isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) })
    else { throw .noScheme }
    guard let scheme = Scheme(rawValue: name) else { throw .unsupportedScheme(name) }
    return (scheme, text[text.index(colon, offsetBy: 3)...])
  }

  private static func encode(_ text: Substring) -> String {
    PercentEncoding.encode(String(text)) { $0 >= 0x80 }
  }

  private static func check(_ bytes: String.UTF8View) throws(InvalidURL) {
    for (offset, index) in bytes.indices.enumerated() {
      switch bytes[index] {
      case 0...0x20, 0x7F: throw .character(offset: offset)
      case UInt8(ascii: "%"):
        guard let decoded = PercentEncoding.decode(bytes[index...].prefix(3)) else {
          throw .percentEncoding(offset: offset)
        }
        guard decoded != [0] else { throw .encodedNUL(offset: offset) }
      default: break
      }
    }
  }

  private static func hostAndPort(_ authority: Substring) throws(InvalidURL) -> (String, UInt16?) {
    guard !authority.contains("@") else { throw .userinfo }
    let host: Substring
    let rest: Substring
    if authority.hasPrefix("[") {
      guard let bracket = authority.firstIndex(of: "]") else { throw .host }
      host = authority[..<bracket].dropFirst()
      rest = authority[authority.index(after: bracket)...]
      guard host.utf8.count(where: { $0 == UInt8(ascii: ":") }) >= 2, host.utf8.count <= 45,
        host.utf8.allSatisfy({ PercentEncoding.hexDigit($0) != nil || ":.".utf8.contains($0) })
      else { throw .host }
    } else {
      host = authority.prefix { $0 != ":" }
      rest = authority[host.endIndex...]
      try checkName(host)
    }
    guard !rest.isEmpty else { return (host.lowercased(), nil) }
    let digits = rest.dropFirst()
    guard rest.hasPrefix(":"), digits.utf8.allSatisfy(isDigit), let port = UInt16(digits), port > 0 else { throw .port }
    return (host.lowercased(), port)
  }

  private static func checkName(_ host: Substring) throws(InvalidURL) {
    guard host.utf8.allSatisfy({ $0 < 0x80 }) else { throw .internationalHost }
    let labels = (host.hasSuffix(".") ? host.dropLast() : host).split(separator: ".", omittingEmptySubsequences: false)
    guard host.utf8.count <= 253,
      labels.allSatisfy({ label in
        (1...63).contains(label.utf8.count)
          && label.utf8.allSatisfy { isLetter($0) || isDigit($0) || "-_".utf8.contains($0) }
      })
    else { throw .host }
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
