import CTLS
import Glibc
import ReelhaulSystem

/// Speaks TLS on a free loopback port and plain TCP to the server behind it, byte for byte. Events of that server's
/// connection also happen to the encrypted one: its end is an end without TLS's `close_notify`, unless `saysGoodbye`, and
/// its reset is a reset.
package final class TLSRelay: Sendable {
  package let port: UInt16
  private let target: UInt16
  private let listener: Int32
  private let isOpen = Lock(true)
  // OpenSSL counts the references to a context under its own locks.
  private nonisolated(unsafe) let context: OpaquePointer
  private let saysGoodbye: Bool
  private nonisolated(unsafe) let requiredProtocol: UnsafeMutablePointer<CChar>?

  /// - Parameters:
  ///   - requiring: the only ALPN protocol that it speaks, for example `h2`; other clients are refused.
  ///   - highestVersion: the highest TLS version, in its wire form: 0x0303 for 1.2. Nil: all versions.
  ///   - saysGoodbye: whether it sends `close_notify` before it ends a connection.
  package init(
    to target: UInt16, as server: TestCertificates.Server = .valid, requiring requiredProtocol: String? = nil,
    highestVersion: Int32? = nil, saysGoodbye: Bool = false
  ) throws {
    let certificates = try TestCertificates.shared.get()
    guard let context = SSL_CTX_new(TLS_server_method()),
      SSL_CTX_use_certificate_file(context, certificates.certificate(of: server), SSL_FILETYPE_PEM) == 1,
      SSL_CTX_use_PrivateKey_file(context, certificates.key(of: server), SSL_FILETYPE_PEM) == 1
    else { throw TestFleetError("OpenSSL does not take the certificate of \(server)") }
    if let highestVersion { rh_tls_limit_version(context, highestVersion) }
    self.context = context
    self.saysGoodbye = saysGoodbye
    self.requiredProtocol = requiredProtocol.map { strdup($0) }
    if let text = self.requiredProtocol { rh_tls_require(context, text) }
    self.target = target
    // OpenSSL writes to sockets without MSG_NOSIGNAL.
    signal(SIGPIPE, SIG_IGN)
    (listener, port) = try LoopbackPort.bound()
    guard listen(listener, 512) == 0 else { throw SystemError.last("listen on 127.0.0.1") }
    Thread(name: "tls-relay") { [self] in
      while case let client = LoopbackPort.accept(listener), client >= 0 {
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        Thread(name: "tls-relay") { [self] in serve(client) }.detach()
      }
      Glibc.close(listener)
    }.detach()
  }

  deinit {
    SSL_CTX_free(context)
    free(requiredProtocol)
  }

  package func url(_ path: String, host: String = "127.0.0.1") -> String { "https://\(host):\(port)\(path)" }

  /// Accepts no more connections.
  package func close() {
    isOpen.withLock { isOpen in
      if isOpen { shutdown(listener, Int32(SHUT_RDWR)) }
      isOpen = false
    }
  }

  private func serve(_ client: Int32) {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer {
      Glibc.close(client)
      Glibc.close(server)
    }
    guard let tls = SSL_new(context), SSL_set_fd(tls, client) == 1, LoopbackPort.connect(server, to: target) else {
      return
    }
    defer { SSL_free(tls) }
    rh_tls_read_no_further(tls)
    guard SSL_accept(tls) == 1 else { return }
    relay(tls, client, server)
  }

  private func relay(_ tls: OpaquePointer, _ client: Int32, _ server: Int32) {
    var buffer = [UInt8](repeating: 0, count: 16384)
    while true {
      var ends = [
        pollfd(fd: client, events: Int16(POLLIN), revents: 0), pollfd(fd: server, events: Int16(POLLIN), revents: 0),
      ]
      if SSL_pending(tls) == 0 { while poll(&ends, 2, -1) < 0, errno == EINTR {} }
      if SSL_pending(tls) > 0 || ends[0].revents != 0 {
        let count = SSL_read(tls, &buffer, Int32(buffer.count))
        if count > 0 {
          guard send(server, buffer, Int(count), Int32(MSG_NOSIGNAL)) == Int(count) else { return }
        } else if SSL_get_error(tls, count) != SSL_ERROR_WANT_READ {
          return
        }
      }
      if ends[1].revents != 0 {
        let count = recv(server, &buffer, buffer.count, 0)
        if count < 0 { reset(client) } else if count == 0, saysGoodbye { SSL_shutdown(tls) }
        guard count > 0 else { return }
        guard SSL_write(tls, buffer, Int32(count)) == Int32(count) else { return }
      }
    }
  }

  private func reset(_ socket: Int32) {
    var now = linger(l_onoff: 1, l_linger: 0)
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
  }
}
