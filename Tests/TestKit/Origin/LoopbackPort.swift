import Glibc
import System

/// TCP ports of 127.0.0.1.
package enum LoopbackPort {
  /// A socket bound to a port of its own, and that port.
  static func bound() throws -> (socket: Int32, port: UInt16) {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    var address = address(port: 0)
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

  /// Whether a connection to `port` succeeds now.
  package static func accepts(_ port: UInt16) -> Bool {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(socket) }
    return connect(socket, to: port)
  }

  /// Connects a TCP socket, blocking.
  static func connect(_ socket: Int32, to port: UInt16) -> Bool {
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
