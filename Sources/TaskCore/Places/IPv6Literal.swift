/// An IPv6 address between the brackets of a URL's host (RFC 4291, without a zone).
///
/// Written by hand, because TaskCore imports only the standard library, and because `inet_pton` does not say what is
/// wrong. A test checks that both give the same answers. This is only a check of the text: `NetworkPolicy` judges the
/// binary addresses of connections.
enum IPv6Literal {
  typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

  /// Describes what is wrong with `text`; `nil` if it is an address.
  static func problem(of text: Bytes) -> InvalidIPv6? {
    let colon = UInt8(ascii: ":")
    var rest = text
    var groups = 0
    var hasGap = false
    if rest.starts(with: "::".utf8) {
      hasGap = true
      rest = rest.dropFirst(2)
    }
    while !rest.isEmpty {
      let group = rest.prefix { $0 != colon }
      rest = rest[group.endIndex...]
      if rest.isEmpty, group.contains(UInt8(ascii: ".")) {
        guard IPv4Literal.isDotted(group) else { return .ipv4Tail }
        groups += 2
        break
      }
      guard (1...4).contains(group.count), group.allSatisfy({ PercentEncoding.hexDigit($0) != nil }) else {
        return .group
      }
      groups += 1
      guard rest.popFirst() != nil else { break }
      if rest.first == colon {
        guard !hasGap else { return .gaps }
        hasGap = true
        rest.removeFirst()
      } else if rest.isEmpty {
        return .group
      }
    }
    return (hasGap ? groups <= 7 : groups == 8) ? nil : .groups
  }
}

/// Why the text between the brackets of a URL's host is not an IPv6 address.
public enum InvalidIPv6: Error, Hashable, Sendable, CaseIterable {
  case bracket
  case zone
  case group
  case groups
  case gaps
  case ipv4Tail
}

extension InvalidIPv6: CustomStringConvertible {
  public var description: String {
    switch self {
    case .bracket: "the \"]\" after an IPv6 address is missing"
    case .zone: "a zone (%eth0) has a meaning only on one machine: write the IPv6 address without it"
    case .group: "every group of an IPv6 address must be one to four hexadecimal digits, with one colon between two"
    case .groups: "an IPv6 address must have eight groups; \"::\" stands for one or more of them"
    case .gaps: "\"::\" may appear only once in an IPv6 address"
    case .ipv4Tail: "an IPv4 address at the end of an IPv6 address must be four numbers from 0 to 255"
    }
  }
}
