extension WebURL {
  public init(_ text: String) throws(InvalidURL) {
    let (scheme, rest) = try Self.scheme(text)
    try Self.check(text.utf8)
    let authority = rest.utf8.prefix { !"/?#".utf8.contains($0) }
    let (host, port) = try Self.hostAndPort(Substring(authority))
    let target = rest.utf8[authority.endIndex...].prefix { $0 != UInt8(ascii: "#") }
    let path = target.prefix { $0 != UInt8(ascii: "?") }
    let query = path.endIndex == target.endIndex ? nil : Substring(target[path.endIndex...].dropFirst())
    self.init(
      scheme: scheme, host: host, port: port,
      path: path.first == UInt8(ascii: "/") ? Self.encode(Substring(path)) : "/", query: query.map(Self.encode))
  }

  private static func scheme(_ text: String) throws(InvalidURL) -> (Scheme, Substring) {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), text.utf8[colon...].starts(with: "://".utf8) else {
      throw .noScheme
    }
    let name = text[..<colon].lowercased()
    guard name.utf8.first.map(isLetter) == true, name.utf8.count <= 32,
      name.utf8.allSatisfy({ isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) })
    else { throw .noScheme }
    guard let scheme = Scheme(rawValue: name) else { throw .unsupportedScheme(name) }
    return (scheme, text[text.utf8.index(colon, offsetBy: 3)...])
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
    guard !authority.utf8.contains(UInt8(ascii: "@")) else { throw .userinfo }
    let host: Substring
    let rest: Substring
    if authority.utf8.first == UInt8(ascii: "[") {
      guard let bracket = authority.utf8.firstIndex(of: UInt8(ascii: "]")) else { throw .host }
      host = Substring(authority.utf8[..<bracket].dropFirst())
      rest = Substring(authority.utf8[bracket...].dropFirst())
      guard host.utf8.count(where: { $0 == UInt8(ascii: ":") }) >= 2, host.utf8.count <= 45,
        host.utf8.allSatisfy({ PercentEncoding.hexDigit($0) != nil || ":.".utf8.contains($0) })
      else { throw .host }
    } else {
      host = Substring(authority.utf8.prefix { $0 != UInt8(ascii: ":") })
      rest = authority[host.endIndex...]
      try checkName(host)
    }
    guard !rest.isEmpty else { return (host.lowercased(), nil) }
    let digits = rest.utf8.dropFirst()
    guard rest.utf8.first == UInt8(ascii: ":"), digits.allSatisfy(isDigit), let port = UInt16(Substring(digits)),
      port > 0
    else { throw .port }
    return (host.lowercased(), port)
  }

  private static func checkName(_ host: Substring) throws(InvalidURL) {
    guard host.utf8.allSatisfy({ $0 < 0x80 }) else { throw .internationalHost }
    let dot = UInt8(ascii: ".")
    let labels = (host.utf8.last == dot ? host.utf8.dropLast() : host.utf8).split(
      separator: dot, omittingEmptySubsequences: false)
    guard host.utf8.count <= 253,
      labels.allSatisfy({ label in
        (1...63).contains(label.count) && label.allSatisfy { isLetter($0) || isDigit($0) || "-_".utf8.contains($0) }
      })
    else { throw .host }
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
