import Glibc
import ReelhaulSystem

/// The ends of a TCP connection, by which libcurl names it right before it sends a request.
struct SocketRoute: Hashable {
  var localPort: Int
  var peer: SocketName

  init(localPort: Int, peer: SocketName) {
    (self.localPort, self.peer) = (localPort, peer)
  }

  /// That of a socket; `nil` if it is not connected.
  init?(_ descriptor: Int32) {
    guard let local = SocketName(descriptor, getsockname), let peer = SocketName(descriptor, getpeername) else {
      return nil
    }
    self.init(localPort: local.port, peer: peer)
  }
}
