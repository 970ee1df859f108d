import Glibc
import ReelhaulSystem

/// Finds TCP ports.
package enum FreePort {
  /// A port of 127.0.0.1 that was free a moment ago.
  package static func find() throws(SystemError) -> Int {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw SystemError(errno: errno, operation: "socket") }
    defer { close(socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, size) == 0 && getsockname(socket, $0, &size) == 0
      }
    }
    guard code else { throw SystemError(errno: errno, operation: "bind 127.0.0.1") }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}
