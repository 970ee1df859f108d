import Glibc
import ReelhaulSystem

/// A TCP proxy on a free port that makes a server far away: a delay in each direction, jitter, and a rate for each
/// connection, in user space.
package final class FarProxy: Sendable {
  package struct Way: Sendable {
    /// Of each direction.
    package var delay: Duration
    /// Added to each delay, at random, from none to this. Bytes keep their order.
    package var jitter: Duration
    /// Bytes per second that the server's answers move on each connection; `nil`: as much as there is.
    package var rate: Int64?
    /// Connections beyond these are reset as soon as they are accepted.
    package var connections: Int?

    package init(
      delay: Duration = .zero, jitter: Duration = .zero, rate: Int64? = nil, connections: Int? = nil
    ) {
      self.delay = delay
      self.jitter = jitter
      self.rate = rate
      self.connections = connections
    }
  }

  private struct State {
    var open: Set<Int32> = []
    var most = 0
    var accepted = 0
    var refused = 0
    var isOpen = true
  }

  package let port: UInt16
  private let listener: Int32
  private let target: UInt16
  private let way: Way
  private let state = Lock(State())

  package init(to target: UInt16, _ way: Way) throws {
    self.target = target
    self.way = way
    (listener, port) = try LoopbackPort.bound()
    guard listen(listener, 64) == 0 else { throw SystemError.last("listen") }
    Thread(name: "far-proxy") { [self] in
      while case let client = LoopbackPort.accept(listener), client >= 0 { serve(client) }
      Glibc.close(listener)
    }.detach()
  }

  /// The most connections that were open at once, and how many there were in all; without those that were reset.
  package var most: Int { state.withLock { $0.most } }
  package var accepted: Int { state.withLock { $0.accepted } }
  /// How many were reset because there were enough.
  package var refused: Int { state.withLock { $0.refused } }

  /// Accepts no more connections, and ends those that are open.
  package func close() {
    let open = state.withLock { state -> Set<Int32> in
      guard state.isOpen else { return [] }
      state.isOpen = false
      return state.open.union([listener])
    }
    for socket in open { shutdown(socket, Int32(SHUT_RDWR)) }
  }

  private func serve(_ client: Int32) {
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let isWelcome = state.withLock { state in
      // The threads of those that their clients have closed may not have noticed it yet.
      state.open = state.open.filter { !Self.hasEnded($0) }
      guard state.isOpen, state.open.count < way.connections ?? .max else {
        state.refused += 1
        return false
      }
      state.open.insert(client)
      state.most = max(state.most, state.open.count)
      state.accepted += 1
      return true
    }
    guard isWelcome, LoopbackPort.connect(server, to: target) else {
      var reset = linger(l_onoff: 1, l_linger: 0)
      setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, socklen_t(MemoryLayout<linger>.size))
      leave(client, server)
      return
    }
    let left = Lock(2)
    for (from, to, rate) in [(client, server, nil), (server, client, way.rate)] as [(Int32, Int32, Int64?)] {
      let pipe = Pipe(way, rate: rate)
      Thread(name: "far-in") { pipe.read(from) }.detach()
      Thread(name: "far-out") { [self] in
        pipe.write(to, closing: from)
        let isLast = left.withLock { left in
          left -= 1
          return left == 0
        }
        if isLast { leave(client, server) }
      }.detach()
    }
  }

  private static func hasEnded(_ client: Int32) -> Bool {
    var end = pollfd(fd: client, events: OriginConnection.hangUp, revents: 0)
    return poll(&end, 1, 0) > 0
  }

  private func leave(_ client: Int32, _ server: Int32) {
    _ = state.withLock { $0.open.remove(client) }
    Glibc.close(client)
    Glibc.close(server)
  }
}

/// One direction of one connection.
private final class Pipe: Sendable {
  private struct State {
    var pieces: [(bytes: [UInt8], due: Int64)] = []
    var size = 0
    var hasEnded = false
    var isCut = false
  }

  private let way: FarProxy.Way
  private let rate: Int64?
  /// What is on its way at most.
  private let capacity: Int
  private let state = Condition(State())

  init(_ way: FarProxy.Way, rate: Int64?) {
    self.way = way
    self.rate = rate
    capacity = rate.map { Int(Double($0) * way.delay.seconds) + (64 << 10) } ?? 4 << 20
  }

  func read(_ socket: Int32) {
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    while true {
      let count = recv(socket, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      let jitter = way.jitter > .zero ? Int64.random(in: 0...way.jitter.nanoseconds) : 0
      let due = Clocks.boottime() + way.delay.nanoseconds + jitter
      let isCut = state.wait(
        until: { $0.size < capacity || $0.isCut },
        then: { state in
          state.pieces.append((Array(buffer[..<count]), max(due, state.pieces.last?.due ?? 0)))
          state.size += count
          return state.isCut
        })
      state.broadcast()
      if isCut { break }
    }
    state.withLock { $0.hasEnded = true }
    state.broadcast()
  }

  func write(_ socket: Int32, closing source: Int32) {
    var freeAt: Int64 = 0
    while let piece = next() {
      sleep(until: max(piece.due, freeAt))
      guard send(piece.bytes, to: socket) else {
        state.withLock { $0.isCut = true }
        state.broadcast()
        shutdown(source, Int32(SHUT_RDWR))
        break
      }
      if let rate {
        freeAt = max(freeAt, Clocks.boottime() - 20_000_000) + Int64(piece.bytes.count) * 1_000_000_000 / rate
      }
    }
    shutdown(socket, Int32(SHUT_WR))
  }

  private func next() -> (bytes: [UInt8], due: Int64)? {
    defer { state.broadcast() }
    return state.wait(
      until: { !$0.pieces.isEmpty || $0.hasEnded },
      then: { state in
        guard !state.pieces.isEmpty else { return nil }
        let piece = state.pieces.removeFirst()
        state.size -= piece.bytes.count
        return piece
      })
  }

  private func sleep(until time: Int64) {
    let left = time - Clocks.boottime()
    if left > 0 { usleep(UInt32(left / 1000)) }
  }

  private func send(_ bytes: [UInt8], to socket: Int32) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }
}
