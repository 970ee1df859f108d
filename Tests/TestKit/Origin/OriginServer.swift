import ReelhaulSystem
import TaskCore

/// An HTTP/1.1 origin on a free loopback port. It serves generated files of any size, makes the mistakes that a test
/// asks for, and remembers every request.
package final class OriginServer: Sendable {
  /// Decides the faults of the answer to one request; `[]` for none.
  package typealias Script = @Sendable (OriginRequest) -> [OriginFault]

  private struct State {
    var files: [String: OriginFile] = [:]
    var scripts: [String: Script] = [:]
    var exchanges: [OriginExchange] = []
    /// The number of requests so far, by path.
    var counts: [String: Int] = [:]
    /// Of all connections so far.
    var connections = 0
    var inProgress = 0
    var waiting: [(predicate: @Sendable (OriginExchange) -> Bool, CheckedContinuation<OriginExchange, Never>)] = []
  }

  package var port: UInt16 { listener.port }
  private let listener: LoopbackServer
  private let state = Lock(State())

  /// - Parameter receiveBuffer: the number of bytes that it accepts before it reads them; nil for the usual number.
  package init(receiveBuffer: Int32? = nil) throws {
    listener = try LoopbackServer(name: "origin", receiveBuffer: receiveBuffer)
    listener.start { [self] socket in
      let number = state.withLock { state in
        state.connections += 1
        return state.connections
      }
      OriginConnection(socket: socket, number: number, server: self).serve()
    }
  }

  package func url(_ path: String, host: String = "127.0.0.1") -> String {
    "http://\(host):\(port)\(path)"
  }

  /// Puts `file` at `path`, or replaces the file there, at once and for all later requests.
  package func serve(_ path: String, _ file: OriginFile) {
    state.withLock { $0.files[path] = file }
  }

  /// Lets `script` decide about every request for `path`, whether a file exists or not.
  package func script(_ path: String, _ script: @escaping Script) {
    state.withLock { $0.scripts[path] = script }
  }

  /// The same faults for every request for `path`.
  package func always(_ path: String, _ faults: OriginFault...) {
    script(path) { _ in faults }
  }

  /// Sends no byte of `path` from `offset` on until the gate opens. So the transfer cannot end before the test has
  /// acted, however fast the machine is.
  package func hold(_ path: String, from offset: Int64) -> OriginGate {
    let gate = OriginGate()
    script(path) { [.hold(after: max(0, offset - ($0.range?.first ?? 0)), gate)] }
    return gate
  }

  /// The number of open connections.
  package var connections: Int { listener.connections }

  /// Every request for `path` so far, in the order of arrival.
  package func exchanges(_ path: String) -> [OriginExchange] {
    state.withLock { $0.exchanges.filter { $0.request.path == path } }
  }

  /// The number of bytes of the file at `path` that were sent more than once.
  package func bytesSentAgain(_ path: String) -> Int64 {
    var all = ByteRanges()
    var total: Int64 = 0
    for exchange in exchanges(path) {
      total += exchange.sent.count
      for range in exchange.sent.ranges { all.insert(range) }
    }
    return total - all.count
  }

  /// The first exchange, past or future, that meets `predicate` when its head or body is sent, or when it ends.
  package func first(where predicate: @escaping @Sendable (OriginExchange) -> Bool) async -> OriginExchange {
    await withCheckedContinuation { continuation in
      let found = state.withLock { state in
        let found = state.exchanges.first(where: predicate)
        if found == nil { state.waiting.append((predicate, continuation)) }
        return found
      }
      if let found { continuation.resume(returning: found) }
    }
  }

  /// Ends every connection and waits for the threads.
  package func close() {
    guard listener.close() else { return }
    // The scripts may hold a reference to the server.
    state.withLock { $0.scripts = [:] }
  }
}

// The calls of connections to their server.
extension OriginServer {
  /// Records `request`, and decides the answer.
  func begin(_ request: OriginRequest) -> (exchange: Int, OriginResponse) {
    let (exchange, request, file, script) = state.withLock { state in
      var request = request
      let path = request.path
      state.counts[path, default: 0] += 1
      state.inProgress += 1
      request.number = state.counts[path] ?? 0
      request.inProgress = state.inProgress
      state.exchanges.append(OriginExchange(request: request))
      return (state.exchanges.count - 1, request, state.files[path], state.scripts[path])
    }
    var response = file?.answer(to: request) ?? .text(404, "not found")
    for fault in script?(request) ?? [] { fault.apply(to: &response, request: request, file: file) }
    if request.method == "HEAD" {
      response.body = []
      response.isChunked = false
    }
    return (exchange, response)
  }

  func update(_ exchange: Int, _ change: (inout OriginExchange) -> Void) {
    let (now, waiting) = state.withLock { state in
      change(&state.exchanges[exchange])
      let now = state.exchanges[exchange]
      let waiting = state.waiting.filter { $0.predicate(now) }
      if !waiting.isEmpty { state.waiting.removeAll { $0.predicate(now) } }
      return (now, waiting)
    }
    for (_, continuation) in waiting { continuation.resume(returning: now) }
  }

  /// Its last bytes follow. When its client has them, the next request may arrive before this thread goes on.
  func ends(_ exchange: Int) {
    state.withLock { state in
      guard state.exchanges[exchange].isInProgress else { return }
      state.exchanges[exchange].isInProgress = false
      state.inProgress -= 1
    }
  }

  func finish(_ exchange: Int) {
    ends(exchange)
    update(exchange) { $0.isFinished = true }
  }
}
