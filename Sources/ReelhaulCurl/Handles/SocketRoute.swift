import Glibc

/// The ends of a TCP connection, by which libcurl names it right before it sends a request.
struct SocketRoute: Hashable {
  var localPort: Int32
  var peerPort: Int32
  /// The address of the other end as text, without a zone.
  var peer: String

  init(localPort: Int32, peerPort: Int32, peer: String) {
    (self.localPort, self.peerPort, self.peer) = (localPort, peerPort, peer)
  }

  /// That of a socket; `nil` if it is not connected.
  init?(_ descriptor: Int32) {
    guard let local = Self.end(descriptor, getsockname), let peer = Self.end(descriptor, getpeername) else {
      return nil
    }
    self.init(localPort: local.port, peerPort: peer.port, peer: peer.address)
  }

  private static func end(
    _ descriptor: Int32, _ name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> (address: String, port: Int32)? {
    var place = sockaddr_in6()  // as long as that of IPv4, or longer
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    return withUnsafeMutableBytes(of: &place) { bytes in
      guard let start = bytes.baseAddress else { return nil }
      guard name(descriptor, start.assumingMemoryBound(to: sockaddr.self), &length) == 0 else { return nil }
      let family = Int32(bytes.load(as: sa_family_t.self))
      // The port is at the same place in both.
      let port = Int32(UInt16(bigEndian: bytes.load(fromByteOffset: 2, as: UInt16.self)))
      let address =
        family == AF_INET6
        ? MemoryLayout.offset(of: \sockaddr_in6.sin6_addr) : MemoryLayout.offset(of: \sockaddr_in.sin_addr)
      var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
      guard let address, inet_ntop(family, start + address, &text, socklen_t(text.count)) != nil else { return nil }
      return (String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self), port)
    }
  }
}
