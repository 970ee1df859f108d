import Glibc
import ReelhaulSystem

/// A TCP proxy on a free port. It counts what clients send, cuts a connection at a chosen moment, or passes nothing on
/// for a while.
package final class CuttingProxy: Sendable {
  package enum Cut: Sendable {
    /// The server never sees what the client sent.
    case before
    /// The server receives the text and acts on it, but the client never learns of it.
    case after
  }

  private enum Moment {
    case text([UInt8])
    /// The number of pieces from clients to the server that still pass.
    case pieces(Int)
  }

  private struct State {
    var trigger: (moment: Moment, cut: Cut, thenRefuse: Bool)?
    var isOpen = true
    var bytesSent: Int64 = 0
  }

  package let port: UInt16
  private let listener: Int32
  private let target: UInt16
  private let state = Lock(State())
  private struct Silence {
    var isOn = false
    /// Connections with smaller numbers are silent for good.
    var stranded = 0
    var connections = 0
  }

  private let silence = Condition(Silence())

  /// `port`: 0 for a free one.
  package init(to target: UInt16, on port: UInt16 = 0) throws {
    self.target = target
    (listener, self.port) = try LoopbackPort.bound(to: port)
    guard listen(listener, 64) == 0 else { throw SystemError.last("listen") }
    Thread(name: "cutting-proxy") { [self] in
      while case let client = LoopbackPort.accept(listener), client >= 0 { serve(client) }
      Glibc.close(listener)
    }.detach()
  }

  /// Prepares one cut. `thenRefuse`: refuses all connections afterwards.
  package func cut(_ cut: Cut, when text: String, thenRefuse: Bool = false) {
    state.withLock { $0.trigger = (.text(Array(text.utf8)), cut, thenRefuse) }
  }

  /// Prepares one cut at piece `number` of the bytes that clients send from now on, counted from 1. A request of a
  /// client that waits for its answer is one piece.
  package func cut(_ cut: Cut, atPiece number: Int) {
    state.withLock { $0.trigger = (.pieces(number - 1), cut, false) }
  }

  /// All bytes of clients so far.
  package var bytesSent: Int64 { state.withLock { $0.bytesSent } }

  /// Whether the cut is still to come.
  package var isArmed: Bool { state.withLock { $0.trigger != nil } }

  /// Passes nothing on in either direction, like a network that drops every packet; or passes everything on again,
  /// including the bytes sent meanwhile.
  package func setSilent(_ silent: Bool) {
    silence.withLock { $0.isOn = silent }
    silence.broadcast()
  }

  /// Ends the silence for new connections. Existing connections stay silent, as if a firewall had forgotten them.
  package func strand() {
    silence.withLock { silence in
      silence.isOn = false
      silence.stranded = silence.connections
    }
    silence.broadcast()
  }

  /// Accepts no more connections.
  package func close() {
    guard
      state.withLock({ state in
        defer { state.isOpen = false }
        return state.isOpen
      })
    else { return }
    shutdown(listener, Int32(SHUT_RDWR))
    silence.withLock { $0 = Silence() }
    silence.broadcast()
  }

  private func serve(_ client: Int32) {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard LoopbackPort.connect(server, to: target) else {
      Glibc.close(client)
      Glibc.close(server)
      return
    }
    let pair = SocketPair(client, server)
    let number = silence.withLock { silence in
      defer { silence.connections += 1 }
      return silence.connections
    }
    Thread(name: "proxy-up") { [self] in
      pair.pump(from: client, to: server) { [self] bytes in
        awaitSound(number)
        state.withLock { $0.bytesSent += Int64(bytes.count) }
        guard let (cut, refuse) = takeTrigger(in: bytes) else { return .forward }
        if refuse { close() }
        return cut == .before ? .drop : .forwardAndCut
      }
    }.detach()
    Thread(name: "proxy-down") {
      pair.pump(from: server, to: client) { [self] _ in
        awaitSound(number)
        return .forward
      }
    }.detach()
  }

  private func awaitSound(_ number: Int) {
    silence.wait(until: { !$0.isOn && number >= $0.stranded }, then: { _ in })
  }

  private func takeTrigger(in bytes: ArraySlice<UInt8>) -> (Cut, Bool)? {
    state.withLock { state in
      guard let trigger = state.trigger else { return nil }
      switch trigger.moment {
      case .text(let text):
        guard bytes.contains(subsequence: text) else { return nil }
      case .pieces(let left) where left > 0:
        state.trigger?.moment = .pieces(left - 1)
        return nil
      case .pieces: break
      }
      state.trigger = nil
      return (trigger.cut, trigger.thenRefuse)
    }
  }
}

/// Both ends of one connection through the proxy; closed when both directions have ended.
private final class SocketPair: Sendable {
  enum Verdict { case forward, drop, forwardAndCut }

  private let client: Int32
  private let server: Int32

  init(_ client: Int32, _ server: Int32) {
    self.client = client
    self.server = server
  }

  deinit {
    close(client)
    close(server)
  }

  func pump(from source: Int32, to sink: Int32, _ judge: (ArraySlice<UInt8>) -> Verdict) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = recv(source, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      switch judge(buffer[..<count]) {
      case .forward:
        guard sendAll(sink, buffer[..<count]) else { return end() }
      case .drop: return end()
      case .forwardAndCut:
        // The client is cut off first, so that no answer can slip through.
        shutdown(source, Int32(SHUT_RDWR))
        _ = sendAll(sink, buffer[..<count])
        shutdown(sink, Int32(SHUT_WR))
        return
      }
    }
    shutdown(sink, Int32(SHUT_WR))
  }

  private func end() {
    shutdown(client, Int32(SHUT_RDWR))
    shutdown(server, Int32(SHUT_RDWR))
  }

  private func sendAll(_ socket: Int32, _ bytes: ArraySlice<UInt8>) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}

extension ArraySlice<UInt8> {
  fileprivate func contains(subsequence text: [UInt8]) -> Bool {
    guard count >= text.count else { return false }
    return (startIndex...(endIndex - text.count)).contains { self[$0..<($0 + text.count)].elementsEqual(text) }
  }
}
