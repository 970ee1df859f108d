import ReelhaulSystem

/// The addresses that transfers may reach: the public internet, and the networks that a worker's owner allows in
/// addition.
///
/// It judges the *resolved* address when a socket is opened, so host names, redirects and DNS rebinding cannot avoid
/// it.
package struct NetworkPolicy: Hashable, Sendable {
  /// Networks that are allowed in any case.
  package var allowed: [CIDR]

  package init(allowed: [CIDR] = []) {
    self.allowed = allowed
  }

  package func permits(_ address: IPAddress) -> Bool {
    if allowed.contains(where: { $0.contains(address) }) { return true }
    guard Self.isPublic(address) else { return false }
    return address.embedded.map(permits) ?? true
  }

  /// False also for an address that is not an IP address, for example a Unix socket.
  package func permits(sockaddr bytes: UnsafeRawBufferPointer) -> Bool {
    IPAddress(sockaddr: bytes).map(permits) ?? false
  }

  /// Whether the address is link-local or a cloud's metadata service: whoever reaches these gets credentials of the
  /// machine.
  package static func givesCredentials(_ address: IPAddress) -> Bool {
    metadata.contains { $0.contains(address) } || address.embedded.map(givesCredentials) ?? false
  }

  /// IPv4 is public except for the special blocks. IPv6 is public only in global unicast and NAT64, without their
  /// special blocks.
  private static func isPublic(_ address: IPAddress) -> Bool {
    switch address {
    case .v4: !special.contains { $0.contains(address) }
    case .v6: global.contains { $0.contains(address) } && !special.contains { $0.contains(address) }
    }
  }

  /// The networks of the clouds' metadata services, and all link-local addresses.
  private static let metadata = [
    CIDR(constant: "169.254.0.0/16"),  // link-local, and nearly every cloud
    CIDR(constant: "100.100.100.200"),  // Alibaba
    CIDR(constant: "168.63.129.16"),  // Azure's platform services
    CIDR(constant: "192.0.0.192"),  // Oracle, formerly
    CIDR(constant: "fe80::/10"),  // link-local
    CIDR(constant: "fd00:ec2::/32"),  // Amazon: fd00:ec2::254 and its neighbours
    CIDR(constant: "fd20:ce::254"),  // Google
    CIDR(constant: "fd00:42::42"),  // Scaleway
    CIDR(constant: "fd00:c1::a9fe:a9fe"),  // Oracle
  ]

  private static let global = [CIDR(constant: "2000::/3"), CIDR(constant: "64:ff9b::/96")]

  /// The registries of special-purpose addresses (RFC 6890 and its updates), and metadata services outside of them.
  private static let special = [
    CIDR(constant: "0.0.0.0/8"),  // this network
    CIDR(constant: "10.0.0.0/8"),  // private
    CIDR(constant: "100.64.0.0/10"),  // shared by carriers, and Alibaba's metadata
    CIDR(constant: "127.0.0.0/8"),  // loopback
    CIDR(constant: "168.63.129.16"),  // Azure's platform services
    CIDR(constant: "169.254.0.0/16"),  // link-local, and 169.254.169.254: metadata
    CIDR(constant: "172.16.0.0/12"),  // private
    CIDR(constant: "192.0.0.0/24"),  // protocol assignments, and Oracle's metadata
    CIDR(constant: "192.0.2.0/24"),  // documentation
    CIDR(constant: "192.88.99.0/24"),  // 6to4 relays, deprecated
    CIDR(constant: "192.168.0.0/16"),  // private
    CIDR(constant: "198.18.0.0/15"),  // benchmarks
    CIDR(constant: "198.51.100.0/24"),  // documentation
    CIDR(constant: "203.0.113.0/24"),  // documentation
    CIDR(constant: "224.0.0.0/4"),  // multicast
    CIDR(constant: "240.0.0.0/4"),  // reserved, and 255.255.255.255: broadcast
    CIDR(constant: "2001::/23"),  // protocol assignments, Teredo among them
    CIDR(constant: "2001:db8::/32"),  // documentation
    CIDR(constant: "3fff::/20"),  // documentation
  ]
}
