import Glibc
import ReelhaulSystem

/// A blocking connection that sends exactly the given bytes.
package final class RawClient: Sendable {
  private let socket: Int32

  /// `receiveBuffer`: how many bytes the kernel keeps that were not read; nil for as many as it likes.
  package init(port: Int, receiveBuffer: Int32? = nil) throws {
    socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    if var receiveBuffer {
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
    }
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0 else { throw SystemError(errno: errno, operation: "connect") }
  }

  deinit { close(socket) }

  package func send(_ text: String) { send(Array(text.utf8)) }

  /// Returns whether the connection took all of it.
  @discardableResult
  package func send(_ bytes: [UInt8]) -> Bool {
    Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  /// Sends nothing more.
  package func finish() { shutdown(socket, Int32(SHUT_WR)) }

  /// Reads at most so many bytes, and returns how many came; 0 at the end.
  package func read(atMost count: Int) -> Int {
    var total = 0
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while total < count {
      let read = recv(socket, &buffer, min(buffer.count, count - total), 0)
      guard read > 0 else { break }
      total += read
    }
    return total
  }

  /// What comes until the server closes the connection, or until `isEnough`. After two minutes it is given up: a stream
  /// that is alive may go on for ever.
  package func receive(until isEnough: (String) -> Bool = { _ in false }) -> String {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    let end = BootInstant.now + .seconds(120)
    while !isEnough(String(decoding: all, as: UTF8.self)), !end.hasPassed {
      let count = recv(socket, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      all += buffer[..<count]
    }
    return String(decoding: all, as: UTF8.self)
  }
}
