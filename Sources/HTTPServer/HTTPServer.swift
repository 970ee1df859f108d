import ReelhaulSystem

/// What answers the requests of an ``HTTPServer``. All calls run on the server's loop.
package protocol HTTPHandler: Sendable {
  /// Whether the body of a request may come, of which only the head is there.
  func admit(_ head: HTTPRequest) async -> HTTPAdmission
  /// Answers a request. The task is canceled if the client goes.
  func answer(_ request: HTTPRequest) async -> HTTPResponse
  /// The answer to what is no request (nil), to one whose body is refused, and to one that the server does not answer as
  /// the handler did.
  func refusal(_ error: HTTPError, of request: HTTPRequest?) -> HTTPResponse
}

extension HTTPHandler {
  package func refusal(_ error: HTTPError, of request: HTTPRequest?) -> HTTPResponse {
    .problem(error.status, error.message)
  }
}

package enum HTTPAdmission: Sendable {
  /// It may have so many bytes.
  case body(limit: Int)
  case refused(HTTPResponse)
}

/// An HTTP/1.1 server on an event loop. It knows nothing of what it serves.
///
/// A client that closes its sending side counts as gone.
// @unchecked: touched only on the loop's thread, but for `start` and `stop`, which go there.
package final class HTTPServer: @unchecked Sendable {
  package struct Settings: Sendable {
    package var host = "127.0.0.1"
    package var port = 0
    package var connections = 12_000
    /// From the first byte of a request, or from the begin of the connection, to the end of the head.
    package var head = Duration.seconds(10)
    /// Between two pieces of a body.
    package var body = Duration.seconds(20)
    /// From the head to the end of the body.
    package var wholeBody = Duration.seconds(120)
    /// Bytes of bodies of all connections together that wait for their rest or their answer.
    package var bodies = 64 << 20
    /// Bytes of all connections together that came behind requests that are not answered yet.
    package var ahead = 16 << 20
    /// Bytes of answers of all connections together that wait for their readers.
    package var answers = 256 << 20
    /// Between two requests.
    package var idle = Duration.seconds(75)
    /// In which a client reads an answer, or else at least 16 KiB of it.
    package var write = Duration.seconds(20)

    package init(port: Int = 0) {
      self.port = port
    }
  }

  let settings: Settings
  let handler: any HTTPHandler
  private let loop: EventLoop
  private var listener: LoopListener?
  private var sweeper: LoopTimer?
  private var connections: [ObjectIdentifier: HTTPConnection] = [:]
  private var work: [Int: Task<Void, any Error>] = [:]
  private var begun = 0
  /// Bytes of bodies that connections hold.
  var held = 0
  /// Bytes that connections have behind the requests that they answer.
  var ahead = 0
  var hasRoomAhead: Bool { ahead <= settings.ahead }
  private(set) var isDraining = false
  /// For the `Date` of answers, made once a second.
  private(set) var date = ""

  package init(loop: EventLoop, settings: Settings, handler: any HTTPHandler) {
    self.loop = loop
    self.settings = settings
    self.handler = handler
  }

  /// Listens. Returns the port. Throws ``SystemError``.
  package func start() async throws -> Int {
    try await loop.task { [self] in
      tick()
      sweeper = loop.timer(after: .seconds(1), every: .seconds(1)) { [self] in tick() }
      do throws(SystemError) {
        let listener = try LoopListener(loop: loop, host: settings.host, port: settings.port) { [self] in accept($0) }
        self.listener = listener
        return listener.port
      } catch {
        sweeper?.cancel()
        throw error
      }
    }.value
  }

  package var connectionCount: Int { connections.count }

  /// Ends: nothing more is accepted, requests are answered within `limit`, and streams are cut.
  package func stop(within limit: Duration = .seconds(5)) async {
    let ending = loop.task { [self] in
      isDraining = true
      listener?.close()
      for connection in connections.values where connection.isIdle || connection.isStreaming { connection.close() }
      let end = BootInstant.now + limit
      while !connections.isEmpty, .now < end { try? await loop.sleep(for: .milliseconds(20)) }
      for connection in connections.values { connection.close() }
      sweeper?.cancel()
      // Canceled now. They may hold what others need to end, such as connections of a pool.
      for task in work.values { _ = try? await task.value }
    }
    _ = try? await ending.value
  }

  private func accept(_ stream: LoopStream) {
    let connection = HTTPConnection(stream, loop: loop, server: self)
    guard connections.count < settings.connections, !isDraining else { return stream.close() }
    connections[ObjectIdentifier(connection)] = connection
    connection.start()
  }

  /// Whether so many bytes may wait for their reader. Few always may. Many get at most half of what is left, so that
  /// slow readers of the largest answers leave room for others. One larger than all of it passes while few wait.
  func hasRoom(for bytes: Int) -> Bool {
    let left = settings.answers - (listener?.unsent ?? 0)
    return bytes <= HTTPStream.most || min(bytes, settings.answers / 4) <= left / 2
  }

  func closed(_ connection: HTTPConnection) {
    connections[ObjectIdentifier(connection)] = nil
  }

  /// Runs what a connection asks for. ``stop(within:)`` waits for its end, also if the connection has gone.
  func run(priority: TaskPriority? = nil, _ body: @escaping @Sendable () async -> Void) -> Task<Void, any Error> {
    begun += 1
    let task = loop.task(priority: priority) { [self, number = begun] in
      await body()
      work[number] = nil
    }
    work[begun] = task
    return task
  }

  private func tick() {
    date = HTTPDate.text(seconds: Clocks.realtimeMicroseconds() / 1_000_000)
    let now = BootInstant.now
    for connection in connections.values where connection.deadline < now { connection.expire() }
  }
}
