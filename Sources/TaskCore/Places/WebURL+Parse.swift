extension WebURL {
  private typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

  public init(_ text: String) throws(InvalidURL) {
    var text = text
    let url: Result<WebURL, InvalidURL> = text.withUTF8 { bytes in
      Result { () throws(InvalidURL) in try WebURL(utf8: bytes[...]) }
    }
    self = try url.get()
  }

  private init(utf8 text: Bytes) throws(InvalidURL) {
    let (scheme, rest) = try Self.scheme(text)
    let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
    // This check must come before the check of percent-encodings, which would complain about the zone's percent sign.
    if authority.first == UInt8(ascii: "["), authority.contains(UInt8(ascii: "%")) { throw .ipv6(.zone) }
    try PercentEncoding.check(text)
    let (host, port) = try Self.hostAndPort(authority)
    let target = rest[authority.endIndex...].prefix { $0 != UInt8(ascii: "#") }
    let path = target.prefix { $0 != UInt8(ascii: "?") }
    let query = path.endIndex == target.endIndex ? nil : target[path.endIndex...].dropFirst()
    self.init(
      scheme: scheme, host: host, port: port,
      path: path.first == UInt8(ascii: "/") ? Self.encode(path) : "/", query: query.map(Self.encode))
  }

  private static func scheme(_ text: Bytes) throws(InvalidURL) -> (Scheme, Bytes) {
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")), text[colon...].starts(with: "://".utf8) else {
      throw .noScheme
    }
    let name = text[..<colon]
    guard name.first.map(isLetter) == true, name.count <= 32,
      name.allSatisfy({ isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) })
    else { throw .noScheme }
    let lowercased = Self.lowercased(name)
    guard let scheme = Scheme(rawValue: lowercased) else { throw .unsupportedScheme(lowercased) }
    return (scheme, text[colon...].dropFirst(3))
  }

  private static func encode(_ text: Bytes) -> String {
    PercentEncoding.encode(text) { $0 >= 0x80 }
  }

  private static func hostAndPort(_ authority: Bytes) throws(InvalidURL) -> (String, UInt16?) {
    guard !authority.contains(UInt8(ascii: "@")) else { throw .userinfo }
    let host: Bytes
    let rest: Bytes
    if authority.first == UInt8(ascii: "[") {
      guard let bracket = authority.firstIndex(of: UInt8(ascii: "]")) else { throw .ipv6(.bracket) }
      host = authority[..<bracket].dropFirst()
      rest = authority[bracket...].dropFirst()
      if let problem = IPv6Literal.problem(of: host) { throw .ipv6(problem) }
    } else {
      host = authority.prefix { $0 != UInt8(ascii: ":") }
      rest = authority[host.endIndex...]
      try checkName(host)
    }
    // A port may be empty (RFC 3986, 3.2.3).
    guard !rest.isEmpty, !rest.elementsEqual(":".utf8) else { return (lowercased(host), nil) }
    let digits = rest.dropFirst()
    guard rest.first == UInt8(ascii: ":"), digits.allSatisfy(isDigit),
      let port = UInt16(String(decoding: digits, as: UTF8.self)), port > 0
    else { throw .port }
    return (lowercased(host), port)
  }

  private static func checkName(_ host: Bytes) throws(InvalidURL) {
    guard host.allSatisfy({ $0 < 0x80 }) else { throw .internationalHost }
    guard host.count <= 253 else { throw .host }
    var label = 0
    // A dot at the end is allowed.
    let name = host.last == UInt8(ascii: ".") ? host.dropLast() : host
    for byte in name {
      if byte == UInt8(ascii: "."), label > 0 {
        label = 0
        continue
      }
      guard isLetter(byte) || isDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_"), label < 63 else {
        throw .host
      }
      label += 1
    }
    guard label > 0 else { throw .host }
    // No domain ends in a number: such a host must be an address.
    let last = name.lastIndex(of: UInt8(ascii: ".")).map { name[$0...].dropFirst() } ?? name
    guard !IPv4Literal.isNumber(last) || IPv4Literal.isAddress(host) else { throw .ipv4 }
  }

  private static func lowercased(_ text: Bytes) -> String {
    String(decoding: text, as: UTF8.self).lowercased()
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
