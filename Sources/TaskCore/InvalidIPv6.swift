/// Why what stands between the brackets of a URL's host is no IPv6 address.
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
    case .bracket: "the \"]\" behind an IPv6 address is missing"
    case .zone: "a zone (%eth0) has a meaning on one machine only: write the IPv6 address without it"
    case .group: "every group of an IPv6 address must be one to four hexadecimal digits, with one colon between two"
    case .groups: "an IPv6 address must have eight groups; \"::\" stands for one or more of them"
    case .gaps: "\"::\" may stand only once in an IPv6 address"
    case .ipv4Tail: "an IPv4 address at the end of an IPv6 address must be four numbers from 0 to 255"
    }
  }
}
