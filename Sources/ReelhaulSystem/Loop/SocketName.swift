import CReelhaulUV
import Glibc

/// One end of a connection, or of a listening socket.
package struct SocketName: Hashable, Sendable {
  /// As text.
  package var host: String
  package var port: Int

  package init(host: String, port: Int) {
    (self.host, self.port) = (host, port)
  }

  /// That which `call`, getsockname(2) or getpeername(2), tells of a socket; `nil` if it has none.
  package init?(
    _ descriptor: Int32, _ call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    var text = [CChar](repeating: 0, count: 64)
    let port = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address -> in_port_t? in
        guard call(descriptor, address, &size) == 0, uv_ip_name(address, &text, text.count) == 0 else { return nil }
        // It is at the same place for both families.
        return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_port }
      }
    }
    guard let port else { return nil }
    host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    self.port = Int(in_port_t(bigEndian: port))
  }
}
