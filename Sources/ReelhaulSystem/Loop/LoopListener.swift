import CReelhaulSystem
import CReelhaulUV
import Glibc

/// Accepts TCP connections on an ``EventLoop``. The process ignores SIGPIPE from then on: libuv's writes would raise it
/// when a client has gone.
///
/// It does not use libuv's own listening: while there are no descriptors, that would call again and again, and nothing else
/// would run on the loop.
// @unchecked: touched only on the loop's thread, which every call checks.
package final class LoopListener: @unchecked Sendable {
  private let loop: EventLoop
  private let socket: Int32
  private var poll: LoopPoll?
  private var rest: LoopTimer?
  private let buffer = LoopBuffer(capacity: 64 << 10)
  private let backlog = LoopBacklog()
  private let accept: @Sendable (LoopStream) -> Void
  /// The port, also if 0 was asked for.
  package let port: Int
  /// How many bytes its connections hold that are not sent yet.
  package var unsent: Int { backlog.bytes }

  /// So many connections are accepted before other work of the loop has its turn.
  private static let atOnce = 64
  /// The pause after the machine could not accept one. The clients wait in the kernel.
  private static let pause = Duration.milliseconds(100)

  /// Call it on the loop. `host` is an IPv4 or IPv6 address. Throws if the address cannot be listened on.
  package init(
    loop: EventLoop, host: String, port: Int, backlog: Int32 = 1024,
    _ accept: @escaping @Sendable (LoopStream) -> Void
  ) throws(SystemError) {
    signal(SIGPIPE, SIG_IGN)
    let socket = try Self.listen(host, port, backlog)
    self.loop = loop
    self.socket = socket
    self.accept = accept
    self.port = SocketName(socket, getsockname)?.port ?? port
    do throws(SystemError) {
      poll = try LoopPoll(loop: loop, fd: socket) { [self] _ in acceptSome() }
    } catch {
      Glibc.close(socket)
      throw error
    }
    poll?.watch(.readable)
  }

  private static func listen(_ host: String, _ port: Int, _ backlog: Int32) throws(SystemError) -> Int32 {
    let isIPv6 = host.contains(":")
    var address = sockaddr_storage()
    let code = withUnsafeMutableBytes(of: &address) { bytes in
      isIPv6
        ? uv_ip6_addr(host, Int32(port), bytes.baseAddress!.assumingMemoryBound(to: sockaddr_in6.self))
        : uv_ip4_addr(host, Int32(port), bytes.baseAddress!.assumingMemoryBound(to: sockaddr_in.self))
    }
    guard code == 0 else { throw SystemError(errno: EINVAL, operation: "listen on \(host): it is no address") }
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let socket = Glibc.socket(isIPv6 ? AF_INET6 : AF_INET, type, 0)
    guard socket >= 0 else { throw .last("listen on \(host):\(port)") }
    var (isOn, isOff): (Int32, Int32) = (1, 0)
    // An address that stands for all is that of both families.
    if isIPv6 { setsockopt(socket, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &isOff, socklen_t(MemoryLayout<Int32>.size)) }
    let size = socklen_t(isIPv6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size)) == 0
          && bind(socket, address, size) == 0
      }
    }
    guard isBound, Glibc.listen(socket, backlog) == 0 else {
      let error = SystemError.last("listen on \(host):\(port)")
      Glibc.close(socket)
      throw error
    }
    return socket
  }

  private func acceptSome() {
    for _ in 0..<Self.atOnce where poll != nil {
      let descriptor = rh_accept(socket)
      guard descriptor >= 0 else {
        switch -descriptor {
        case EAGAIN: return
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: return takeARest()
        // This one has gone.
        default: continue
        }
      }
      let stream = LoopStream(loop: loop, buffer: buffer, backlog: backlog)
      if stream.take(descriptor) { accept(stream) } else { stream.close() }
    }
  }

  private func takeARest() {
    poll?.watch([])
    rest = loop.timer(after: Self.pause) { [self] in
      rest = nil
      poll?.watch(.readable)
    }
  }

  package func close() {
    loop.checkIsolated()
    guard let poll else { return }
    self.poll = nil
    rest?.cancel()
    rest = nil
    poll.close()
    Glibc.close(socket)
  }
}
