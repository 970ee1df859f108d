import Glibc
import ReelhaulSystem

/// TCP ports of 127.0.0.1.
package enum LoopbackPort {
  /// A free port for a server that binds it later, or again, and never the same one twice, also in other processes of
  /// tests. It lies below those that the kernel gives to outgoing connections, which would take it meanwhile.
  ///
  /// A socket of this process stays bound to it and never listens: that keeps out who looks for a free port, and not a
  /// server that reuses addresses, as all do here.
  package static func free() throws -> Int {
    for _ in 0..<100 {
      let port = UInt16.random(in: 20_000..<32_000)
      guard let socket = try? bound(to: port).socket else { continue }
      var yes: Int32 = 1
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
      return Int(port)
    }
    throw SystemError(errno: EADDRINUSE, operation: "find a free port")
  }

  /// A socket bound to this port, or to a free one, and the port.
  static func bound(to port: UInt16 = 0) throws -> (socket: Int32, port: UInt16) {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    // So that another server can follow while connections of this one are still ending.
    var yes: Int32 = 1
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    var address = address(port: port)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(socket, address, size) == 0 ? getsockname(socket, address, &size) : -1
      }
    }
    guard result == 0 else {
      let error = SystemError.last("bind 127.0.0.1")
      close(socket)
      throw error
    }
    return (socket, UInt16(bigEndian: address.sin_port))
  }

  /// The next connection of a listening socket, which child processes do not inherit; -1 as accept(2).
  package static func accept(_ listener: Int32) -> Int32 {
    let socket = Glibc.accept(listener, nil, nil)
    if socket >= 0 { _ = fcntl(socket, F_SETFD, FD_CLOEXEC) }
    return socket
  }

  /// Whether a connection to `port` succeeds now.
  package static func accepts(_ port: UInt16) -> Bool {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(socket) }
    return connect(socket, to: port)
  }

  /// Waits until a connection of this process to `port` has received bytes that were not read. Returns whether this
  /// happened. Blocks its thread.
  package static func receives(from port: UInt16) -> Bool {
    var ends = (0..<4096).filter { peer(of: $0) == port }.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    return poll(&ends, nfds_t(ends.count), 180_000) > 0
  }

  /// The port of 127.0.0.1 that a socket is connected to.
  private static func peer(of socket: Int32) -> UInt16? {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(socket, $0, &size) }
    }
    return result == 0 && address.sin_family == AF_INET ? UInt16(bigEndian: address.sin_port) : nil
  }

  /// Connects a TCP socket, blocking.
  package static func connect(_ socket: Int32, to port: UInt16) -> Bool {
    var address = address(port: port)
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        Glibc.connect(socket, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  private static func address(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}
