import ReelhaulSystem

/// The connections of a pool and the callers that wait for one. Pure: events in, actions out.
///
/// Connections are opened when a caller waits, never more than `size`. While the server cannot be reached, only one
/// attempt at a time is made, after a growing delay.
struct PoolState {
  typealias Connection = Int
  typealias Waiter = Int

  enum Action: Equatable {
    /// Open one more connection after a delay; answer with ``connected(_:)`` or ``connectFailed(_:random:)``.
    case connect(after: Duration)
    case lend(Connection, to: Waiter)
    case fail(Waiter, PostgresError)
    case close(Connection)
  }

  let size: Int
  let waiterLimit: Int
  /// The server, for people.
  let target: String

  /// The connection that was used last is lent first, because its caches are warm.
  private(set) var idle: [Connection] = []
  private(set) var lent: Set<Connection> = []
  private(set) var waiters: [(id: Waiter, deadline: BootInstant)] = []
  private(set) var connecting = 0
  private(set) var isClosed = false
  /// The delays between failed attempts to connect, with nearly full jitter.
  private var backoff = Backoff(base: .milliseconds(50), limit: .seconds(5), spread: 0.1...1)
  private var lastFailure: PostgresError?

  init(size: Int, waiterLimit: Int = 10_000, target: String = "PostgreSQL") {
    self.size = size
    self.waiterLimit = waiterLimit
    self.target = target
  }

  /// When ``expire(now:)`` has something to do.
  var nextDeadline: BootInstant? { waiters.lazy.map(\.deadline).min() }

  mutating func request(_ waiter: Waiter, deadline: BootInstant) -> [Action] {
    if isClosed { return [.fail(waiter, Self.closed)] }
    if waiters.isEmpty, let connection = idle.popLast() {
      lent.insert(connection)
      return [.lend(connection, to: waiter)]
    }
    guard waiters.count < waiterLimit else {
      return [.fail(waiter, PostgresError(.unavailable, "\(waiterLimit) callers already wait for a connection"))]
    }
    waiters.append((waiter, deadline))
    return grow()
  }

  mutating func cancel(_ waiter: Waiter) -> [Action] {
    guard let index = waiters.firstIndex(where: { $0.id == waiter }) else { return [] }
    waiters.remove(at: index)
    return [.fail(waiter, .canceledCall)]
  }

  mutating func connected(_ connection: Connection) -> [Action] {
    connecting -= 1
    backoff.reset()
    lastFailure = nil
    if isClosed { return [.close(connection)] }
    return offer(connection) + grow()
  }

  /// `random` in 0..<1.
  mutating func connectFailed(_ error: PostgresError, random: Double) -> [Action] {
    connecting -= 1
    let delay = backoff.next(random: random)
    lastFailure = error
    if isClosed { return [] }
    if error.isPermanent || error.code == .configuration {
      // Sessions from before, perhaps with a former password, go on: those who wait get them.
      return lent.isEmpty ? failAll(with: error) : []
    }
    guard !waiters.isEmpty, connecting == 0 else { return [] }
    connecting += 1
    return [.connect(after: delay)]
  }

  /// A connection is returned; it is closed if it is not usable.
  mutating func returned(_ connection: Connection, isUsable: Bool) -> [Action] {
    guard lent.remove(connection) != nil else { return [] }
    if isClosed || !isUsable { return [.close(connection)] + grow() }
    return offer(connection)
  }

  /// An idle connection is lost. A lost connection that is lent is handled when it is returned.
  mutating func lost(_ connection: Connection) -> [Action] {
    guard let index = idle.firstIndex(of: connection) else { return [] }
    idle.remove(at: index)
    return [.close(connection)]
  }

  mutating func expire(now: BootInstant) -> [Action] {
    let late = waiters.filter { $0.deadline <= now }
    waiters.removeAll { $0.deadline <= now }
    let error =
      lastFailure
      ?? PostgresError(.timeout, "no connection became free in time: \(target) answers late, or not at all")
    return late.map { .fail($0.id, error) }
  }

  /// Closes idle connections now, and lent ones when they are returned.
  mutating func close() -> [Action] {
    isClosed = true
    defer { idle = [] }
    return idle.map { .close($0) } + failAll(with: Self.closed)
  }

  private static let closed = PostgresError(.unavailable, "the pool is closed")

  private mutating func offer(_ connection: Connection) -> [Action] {
    guard !waiters.isEmpty else {
      idle.append(connection)
      return []
    }
    lent.insert(connection)
    return [.lend(connection, to: waiters.removeFirst().id)]
  }

  private mutating func grow() -> [Action] {
    guard !isClosed else { return [] }
    let room = size - idle.count - lent.count - connecting
    let wanted = min(room, waiters.count - connecting)
    let allowed = backoff.failures > 0 ? min(wanted, 1 - connecting) : wanted
    guard allowed > 0 else { return [] }
    connecting += allowed
    return [Action](repeating: .connect(after: .zero), count: allowed)
  }

  private mutating func failAll(with error: PostgresError) -> [Action] {
    defer { waiters = [] }
    return waiters.map { .fail($0.id, error) }
  }
}
