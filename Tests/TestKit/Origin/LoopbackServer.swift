import Glibc
import ReelhaulSystem

/// Accepts connections on a free port of 127.0.0.1 and serves each on a thread of its own, with plain sockets, so it
/// shares no code with the tested clients.
final class LoopbackServer: Sendable {
  private struct State {
    var sockets: Set<Int32> = []
    var acceptor: Thread?
    var connections: [Int32: Thread] = [:]
    var ended: [Thread] = []
    var isClosed = false
  }

  let port: UInt16
  private let name: String
  private let listener: Int32
  private let state = Lock(State())

  /// - Parameter receiveBuffer: the number of bytes that it accepts before it reads them; nil for the usual number.
  init(name: String, receiveBuffer: Int32? = nil) throws {
    self.name = name
    (listener, port) = try LoopbackPort.bound()
    if var receiveBuffer {
      setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
    }
    guard listen(listener, 512) == 0 else { throw SystemError.last("listen on 127.0.0.1") }
  }

  /// The number of open connections.
  var connections: Int { state.withLock { $0.sockets.count } }

  /// Begins to accept. `serve` answers one connection until its end; the socket is closed after it.
  func start(_ serve: @escaping @Sendable (Int32) -> Void) {
    let acceptor = Thread(name: name) { [self] in accept(serve) }
    state.withLock { $0.acceptor = acceptor }
  }

  /// Ends every connection and waits for the threads. Returns whether this is the first call.
  @discardableResult
  func close() -> Bool {
    let acceptor = state.withLock { state in
      state.isClosed = true
      for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
      defer { state.acceptor = nil }
      return state.acceptor
    }
    guard let acceptor else { return false }
    shutdown(listener, Int32(SHUT_RDWR))
    acceptor.join()
    let threads = state.withLock { Array($0.connections.values) + $0.ended }
    for thread in threads { thread.join() }
    Glibc.close(listener)
    return true
  }

  /// Sends all `bytes`. Returns false when the client has left.
  static func send(_ bytes: [UInt8], to socket: Int32) -> Bool {
    bytes.withUnsafeBytes { buffer in
      var rest = buffer[...]
      while !rest.isEmpty {
        let count = Glibc.send(
          socket, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count, Int32(MSG_NOSIGNAL))
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }
  }

  private func accept(_ serve: @escaping @Sendable (Int32) -> Void) {
    while true {
      let socket = LoopbackPort.accept(listener)
      if socket < 0, errno == EINTR || errno == ECONNABORTED { continue }
      guard socket >= 0 else { return }
      // A head and its body are two segments, and the second would wait for the client's delayed acknowledgement.
      var isAtOnce: Int32 = 1
      setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &isAtOnce, socklen_t(MemoryLayout<Int32>.size))
      let ended = state.withLock { state in
        guard !state.isClosed else {
          Glibc.close(socket)
          return [Thread]()
        }
        state.sockets.insert(socket)
        // The thread's last step takes the same lock, so its entry is in the table by then.
        state.connections[socket] = Thread(name: name) { [self] in
          serve(socket)
          end(socket)
        }
        defer { state.ended = [] }
        return state.ended
      }
      for thread in ended { thread.join() }
    }
  }

  /// Removes a connection from the table and closes it.
  private func end(_ socket: Int32) {
    state.withLock { state in
      state.sockets.remove(socket)
      if let thread = state.connections.removeValue(forKey: socket) { state.ended.append(thread) }
      // Under the lock, because otherwise close() could shut down a new socket with the same number.
      Glibc.close(socket)
    }
  }
}
