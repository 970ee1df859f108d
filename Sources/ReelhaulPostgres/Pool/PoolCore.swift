import ReelhaulSystem

/// Carries out the actions of ``PoolState`` on the loop.
actor PoolCore {
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private let loop: EventLoop
  private let configuration: PostgresConfiguration
  private let onConnect: @Sendable (PostgresError?) -> Void
  private let resolving: BlockingPool
  private let canceling: BlockingPool
  private var state: PoolState
  private var connections: [PoolState.Connection: PostgresConnection] = [:]
  private var waiters: [PoolState.Waiter: CheckedContinuation<Result<Loan, PostgresError>, Never>] = [:]
  private var lastID = 0
  /// The address of the last connection.
  private var lastAddress: [String: String]?
  private var timer: LoopTimer?
  private var delayed: [PoolState.Connection: LoopTimer] = [:]
  private var attempts: [PoolState.Connection: Task<Void, Never>] = [:]
  private var closers: [CheckedContinuation<Void, Never>] = []
  private var random = SystemRandomNumberGenerator()

  /// A lent connection, which must be given back.
  struct Loan: Sendable {
    let id: PoolState.Connection
    let connection: PostgresConnection
  }

  init(
    loop: EventLoop, configuration: PostgresConfiguration, size: Int,
    onConnect: @escaping @Sendable (PostgresError?) -> Void
  ) {
    self.loop = loop
    self.configuration = configuration
    self.onConnect = onConnect
    // Two pools: a server that does not answer blocks a cancel request, and this must not block connecting to another
    // server, nor soon the cancel requests to that.
    resolving = BlockingPool(name: "postgres-resolve", threads: 1)
    canceling = BlockingPool(name: "postgres-cancel", threads: 8)
    state = PoolState(size: size, target: configuration.target)
  }

  func acquire() async throws(PostgresError) -> Loan {
    guard !Task.isCancelled else { throw .canceledCall }
    let id = newID()
    let deadline = BootInstant.now + configuration.acquireTimeout
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        waiters[id] = continuation
        perform(state.request(id, deadline: deadline))
        armTimer()
        // Canceled before it waited, when the handler had nothing to cancel.
        if Task.isCancelled { perform(state.cancel(id)) }
      }
    } onCancel: {
      loop.execute { self.assumeIsolated { $0.perform($0.state.cancel(id)) } }
    }
    return try outcome.get()
  }

  func release(_ loan: Loan) {
    let isUsable = loan.connection.assumeIsolated { $0.isUsable }
    perform(state.returned(loan.id, isUsable: isUsable))
    guard state.isClosed, state.lent.isEmpty else { return }
    for closer in closers { closer.resume() }
    closers = []
  }

  func reconnect() {
    for connection in connections.values { connection.assumeIsolated { $0.drop() } }
  }

  /// Closes every connection, and waits until lent ones come back. Running calls fail.
  func close() async {
    perform(state.close())
    timer?.cancel()
    timer = nil
    for timer in delayed.values { timer.cancel() }
    delayed = [:]
    for connection in connections.values { await connection.close() }
    for attempt in attempts.values {
      attempt.cancel()
      await attempt.value
    }
    // The state is read inside the closure, because the loop may run other work before it.
    await withCheckedContinuation { if state.lent.isEmpty { $0.resume() } else { closers.append($0) } }
    resolving.abandon()
    canceling.abandon()
  }

  private func newID() -> Int {
    lastID += 1
    return lastID
  }

  private func perform(_ actions: [PoolState.Action]) {
    for action in actions {
      switch action {
      case .connect(let delay): connect(after: delay)
      case .lend(let id, let waiter): lend(id, to: waiter)
      case .fail(let waiter, let error): waiters.removeValue(forKey: waiter)?.resume(returning: .failure(error))
      case .close(let id): connections.removeValue(forKey: id)?.assumeIsolated { $0.close() }
      }
    }
  }

  private func lend(_ id: PoolState.Connection, to waiter: PoolState.Waiter) {
    guard let connection = connections[id], let continuation = waiters.removeValue(forKey: waiter) else { return }
    continuation.resume(returning: .success(Loan(id: id, connection: connection)))
  }

  private func connect(after delay: Duration) {
    let id = newID()
    if delay == .zero { return connect(as: id) }
    delayed[id] = loop.timer(after: delay) { [weak self] in
      self?.assumeIsolated {
        $0.delayed[id] = nil
        $0.connect(as: id)
      }
    }
  }

  private func connect(as id: PoolState.Connection) {
    let connection = PostgresConnection(
      loop: loop, configuration: configuration, resolving: resolving, canceling: canceling)
    connections[id] = connection
    attempts[id] = Task(executorPreference: loop) { await self.attempt(connection, id) }
  }

  private func attempt(_ connection: PostgresConnection, _ id: PoolState.Connection) async {
    do throws(PostgresError) {
      lastAddress = try await connection.connect(beginningWith: lastAddress)
      didConnect(id)
    } catch {
      didFailToConnect(id, error)
    }
    attempts[id] = nil
  }

  private func didConnect(_ id: PoolState.Connection) {
    connections[id]?.assumeIsolated { connection in
      connection.setOnLoss { [weak self] in
        self?.assumeIsolated { $0.perform($0.state.lost(id)) }
      }
    }
    onConnect(nil)
    perform(state.connected(id))
  }

  private func didFailToConnect(_ id: PoolState.Connection, _ error: PostgresError) {
    connections[id] = nil
    if !state.isClosed { onConnect(error) }
    perform(state.connectFailed(error, random: Double.random(in: 0..<1, using: &random)))
  }

  private func armTimer() {
    guard timer == nil, let deadline = state.nextDeadline else { return }
    timer = loop.timer(after: deadline.remaining) { [weak self] in self?.assumeIsolated { $0.expire() } }
  }

  private func expire() {
    timer = nil
    perform(state.expire(now: .now))
    armTimer()
  }
}
