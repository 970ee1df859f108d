import CReelhaulUV
import Glibc

/// Accepts TCP connections on an ``EventLoop``. The process ignores SIGPIPE from then on: libuv's writes would raise it
/// when a client has gone.
// @unchecked: touched only on the loop's thread, which every call checks.
package final class LoopListener: @unchecked Sendable {
  private let loop: EventLoop
  private let handle = LoopHandle<uv_tcp_t>()
  private let buffer = LoopBuffer(capacity: 64 << 10)
  private let backlog = LoopBacklog()
  private let accept: @Sendable (LoopStream) -> Void
  /// The port, also if 0 was asked for.
  package private(set) var port = 0
  /// How many bytes its connections hold that are not sent yet.
  package var unsent: Int { backlog.bytes }

  /// Call it on the loop. `host` is an IPv4 or IPv6 address. Throws if the address cannot be listened on.
  package init(
    loop: EventLoop, host: String, port: Int, backlog: Int32 = 1024,
    _ accept: @escaping @Sendable (LoopStream) -> Void
  ) throws(SystemError) {
    self.loop = loop
    self.accept = accept
    signal(SIGPIPE, SIG_IGN)
    var address = sockaddr_storage()
    let code = withUnsafeMutableBytes(of: &address) { bytes in
      let isIPv6 = host.contains(":")
      return isIPv6
        ? uv_ip6_addr(host, Int32(port), bytes.baseAddress!.assumingMemoryBound(to: sockaddr_in6.self))
        : uv_ip4_addr(host, Int32(port), bytes.baseAddress!.assumingMemoryBound(to: sockaddr_in.self))
    }
    guard code == 0 else { throw SystemError(errno: EINVAL, operation: "listen on \(host): it is no address") }
    uv_tcp_init(loop.raw, handle.open(context: self))
    let bound = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { uv_tcp_bind(handle.pointer, $0, 0) }
    }
    let listens =
      bound == 0
      ? uv_listen(handle.stream, backlog) { stream, status in
        guard status == 0 else { return }
        let handle = UnsafeMutableRawPointer(stream!).assumingMemoryBound(to: uv_tcp_t.self)
        LoopHandle.from(handle).owner(as: LoopListener.self)?.acceptOne()
      } : bound
    guard listens == 0 else {
      handle.close()
      throw SystemError(errno: -listens, operation: "listen on \(host):\(port)")
    }
    self.port = SocketName(handle.descriptor, getsockname)?.port ?? port
  }

  private func acceptOne() {
    let stream = LoopStream(loop: loop, buffer: buffer, backlog: backlog)
    guard stream.take(from: handle) else { return stream.close() }
    accept(stream)
  }

  package func close() {
    loop.checkIsolated()
    handle.close()
  }
}
