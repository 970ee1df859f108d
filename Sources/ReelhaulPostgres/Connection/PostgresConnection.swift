import ReelhaulSystem

/// One session, on the control loop. Requests of several tasks are served one after the other.
///
/// If the calling task is canceled or the deadline has passed, the connection asks the server to cancel the statement
/// and waits for the answer. So the session can still be used, and the outcome is known. If the server does not answer
/// this either, the session is closed.
package actor PostgresConnection {
  /// One request that has not been answered yet.
  private struct Operation {
    let id: Int
    let request: Request
    let continuation: CheckedContinuation<Result<[PostgresRows], PostgresError>, Never>
    var exchange = Exchange<PostgresRows>([])
    var deadline = BootInstant.distantFuture
    /// Why the server was asked to cancel it.
    var interruption: PostgresError?
    var hasRetried = false
    /// Its statements have no names. A PgBouncer gives equal statements of all clients one name at the server, whose plan may
    /// be of former tables whatever the name here.
    var isUnnamed = false
    /// The answer. It is held back until the cancel request has returned, because a late cancel request would hit the
    /// next statement.
    var outcome: Result<[PostgresRows], PostgresError>?
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  nonisolated let loop: EventLoop
  nonisolated let configuration: PostgresConfiguration
  private let resolving: BlockingPool
  private let canceling: BlockingPool
  private var session: Session?
  private var poll: LoopPoll?
  private var connecting: CheckedContinuation<PostgresError?, Never>?
  private var statements: StatementCache
  private var current: Operation?
  private var waiting: [Operation] = []
  /// A cancel request on its way.
  private var cancel: Task<Void, any Error>?
  private var timer: (at: BootInstant, timer: LoopTimer)?
  private var lastID = 0
  private var isClosed = false
  /// Whether a statement failed because of what may be a setting, which the session keeps after it was corrected.
  private var hasWrongSettings = false
  /// Called once, on the loop, when an established session is lost.
  private var onLoss: (@Sendable () -> Void)?

  /// How long the server may take to react to a cancel request.
  private static let grace: Duration = .seconds(5)

  /// `resolving` and `canceling` run calls of libpq that block, and that may never return if the server does not
  /// answer.
  init(
    loop: EventLoop, configuration: PostgresConfiguration, resolving: BlockingPool, canceling: BlockingPool
  ) {
    self.loop = loop
    self.configuration = configuration
    self.resolving = resolving
    self.canceling = canceling
    statements = StatementCache(
      isEnabled: configuration.preparedStatements, generation: .random(in: 0...UInt32.max))
  }

  // MARK: Statements

  /// Runs one statement. `timeout` replaces the configuration's.
  package func query(
    _ statement: PostgresStatement, _ values: PostgresValue..., timeout: Duration? = nil
  ) async throws(PostgresError) -> PostgresRows {
    try await pipeline([PostgresQuery(statement, values)], timeout: timeout)[0]
  }

  /// Runs statements in one round trip. All or nothing: outside of a transaction the server runs them as one. Throws
  /// the error of the first that fails, with its ``PostgresError/statementIndex``.
  package func pipeline(
    _ queries: [PostgresQuery], timeout: Duration? = nil
  ) async throws(PostgresError) -> [PostgresRows] {
    let commits = queries.contains(where: \.statement.writes) && session?.isIdle != false
    return try await run(
      Request(
        body: .batch(queries), lossIsUnknown: commits, timeout: timeout ?? configuration.statementTimeout))
  }

  /// Runs statements given as text, without parameters: migrations, and what a pipeline cannot carry. Returns the last
  /// results, as text and not in binary form.
  @discardableResult
  package func script(_ sql: String, timeout: Duration? = nil) async throws(PostgresError) -> [PostgresRows] {
    try await run(
      Request(
        body: .script(sql), lossIsUnknown: session?.isIdle != false,
        timeout: timeout ?? configuration.statementTimeout))
  }

  func run(_ request: Request) async throws(PostgresError) -> [PostgresRows] {
    guard request.ignoresCancellation || !Task.isCancelled else { throw .canceledCall }
    if case .batch(let queries) = request.body, queries.contains(where: { $0.values.count > 65535 }) {
      throw PostgresError(.protocol, "a statement has at most 65535 parameters")
    }
    lastID += 1
    let id = lastID
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        start(Operation(id: id, request: request, continuation: continuation))
        // Canceled before the start, when the handler had nothing to interrupt.
        if Task.isCancelled, !request.ignoresCancellation { interrupt(id, with: .canceledCall) }
      }
    } onCancel: {
      guard !request.ignoresCancellation else { return }
      loop.execute { self.assumeIsolated { $0.interrupt(id, with: .canceledCall) } }
    }
    return try outcome.get()
  }

  // MARK: State, for the pool

  var isUsable: Bool {
    guard let session, current == nil, !hasWrongSettings else { return false }
    return !session.isBroken && session.isIdle
  }

  func setOnLoss(_ body: @escaping @Sendable () -> Void) {
    onLoss = body
  }

  /// Ends the session. Waiting callers get an error.
  package func close() {
    isClosed = true
    lose(PostgresError(.connection, "the connection was closed"), isLoss: false)
  }

  /// Ends the session as if the server had.
  func drop() {
    lose(PostgresError(.connection, "the connection was given up, because the server does not answer"))
  }

  // MARK: Connecting

  /// Connects, or throws. Must be called exactly once. Returns the address, for the next connection to begin with.
  func connect(beginningWith last: [String: String]?) async throws(PostgresError) -> [String: String] {
    let given = parameters()
    let target: ConnectionTarget
    do {
      target = try await resolving.runAbandonably {
        try ConnectionTarget(PostgresConfiguration.completed(given))
      }
    } catch {
      throw error as? PostgresError ?? PostgresError(.unavailable, "the pool is closed")
    }
    // libpq would leave an address that does not answer only after minutes.
    let addresses = target.addresses(beginningWith: last)
    for address in addresses.dropLast() {
      do throws(PostgresError) {
        try await connect(to: address, within: configuration.connectTimeout(of: addresses.count))
        return address
      } catch {
        guard !error.isPermanent, !isClosed else { throw error }
      }
    }
    let address = addresses[addresses.count - 1]
    try await connect(to: address, within: configuration.connectTimeout)
    return address
  }

  private func connect(to address: [String: String], within timeout: Duration) async throws(PostgresError) {
    guard !isClosed else { throw PostgresError(.unavailable, "the connection was closed") }
    session = try Session(parameters: address)
    let late = loop.timer(after: timeout) { [weak self] in
      self?.assumeIsolated {
        $0.endConnecting(
          PostgresError(.connection, "no answer from \(PostgresConfiguration.target(address)) within \(timeout)"))
      }
    }
    let failure = await withCheckedContinuation { (continuation: CheckedContinuation<PostgresError?, Never>) in
      guard !isClosed else {
        return continuation.resume(returning: PostgresError(.unavailable, "the connection was closed"))
      }
      connecting = continuation
      watch(for: .writable)
    }
    late.cancel()
    if let failure { throw failure }
  }

  private func parameters() -> [String: String] {
    var parameters = configuration.parameters
    parameters["client_encoding"] = "UTF8"
    parameters["fallback_application_name"] = configuration.applicationName
    // Off by default, because looking for Kerberos credentials blocks. The URL can switch it on.
    parameters["gssencmode"] = parameters["gssencmode"] ?? "disable"
    // Cancel requests have only these limits: for bytes on the way, and for a machine that is gone while they wait.
    let limits = [
      "tcp_user_timeout": "\(configuration.acknowledgement.milliseconds)", "keepalives_idle": "30",
      "keepalives_interval": "10", "keepalives_count": "3",
    ]
    return parameters.merging(limits) { own, _ in own }
  }

  private func continueConnecting() {
    // The watch must end first, because libpq may close the descriptor and open another one with the same number.
    poll?.close()
    poll = nil
    switch session?.continueConnecting() {
    case .wantsReading: watch(for: .readable)
    case .wantsWriting: watch(for: .writable)
    case .connected:
      watch(for: .readable)
      endConnecting(nil)
    case .failed(let error): endConnecting(error)
    case nil: break
    }
  }

  private func endConnecting(_ failure: PostgresError?) {
    guard let continuation = connecting else { return }
    connecting = nil
    if failure != nil { dropSession() }
    continuation.resume(returning: failure)
  }

  private func watch(for events: PollEvents) {
    guard let session else { return }
    do {
      let poll = try LoopPoll(loop: loop, fd: session.socket) { [weak self] _ in
        self?.assumeIsolated { $0.isReady() }
      }
      self.poll = poll
      poll.watch(events)
    } catch {
      // libpq has closed the descriptor already, and its message says why.
      endConnecting(ConnectFailure.error(from: session.errorMessage))
    }
  }

  // MARK: Exchanging

  private func isReady() {
    if connecting != nil { continueConnecting() } else { pump() }
  }

  private func start(_ operation: Operation) {
    guard session != nil else {
      let error = PostgresError(.connection, "the connection is closed")
      return operation.continuation.resume(returning: .failure(error))
    }
    if current == nil { send(operation) } else { waiting.append(operation) }
  }

  private func send(_ operation: Operation) {
    guard let session else { return }
    var operation = operation
    operation.deadline = .now + operation.request.timeout
    let accepted: Bool
    switch operation.request.body {
    case .script(let sql):
      operation.exchange = Exchange([.script])
      accepted = session.script(sql)
    case .batch(let queries):
      let steps = send(queries, unnamed: operation.isUnnamed, on: session)
      operation.exchange = Exchange(steps ?? [.sync])
      accepted = steps != nil
    }
    current = operation
    guard accepted else { return lose(PostgresError(.connection, session.errorMessage.firstLine)) }
    armTimer(operation.deadline)
    pump()
  }

  /// Queues a batch in libpq and returns the steps that were sent, or `nil` if libpq refuses.
  private func send(
    _ queries: [PostgresQuery], unnamed: Bool, on session: Session
  ) -> [Exchange<PostgresRows>.Step]? {
    var steps: [Exchange<PostgresRows>.Step] = []
    var preparing: Set<String> = []
    for (index, query) in queries.enumerated() {
      var name: String?
      switch unnamed ? .unnamed : statements.plan(for: query) {
      case .unnamed: break
      case .execute(let known): name = known
      case .prepare(let new):
        name = new
        if preparing.insert(new).inserted {
          guard session.prepare(new, query) else { return nil }
          steps.append(.prepare(name: new, statement: index))
        }
      }
      guard session.execute(name, query) else { return nil }
      steps.append(.execute(statement: index))
    }
    guard session.sync() else { return nil }
    return steps + [.sync]
  }

  /// Moves bytes in both directions and takes the replies that are complete.
  private func pump() {
    guard let session else { return }
    session.flush()
    let isAlive = session.consume()
    // libpq returns replies of a dead session without end. The useful ones come first, so their number is limited.
    var budget = isAlive ? Int.max : 4096
    while budget > 0, current?.outcome == nil, current?.exchange.isComplete == false,
      let reply = session.nextReply()
    {
      current?.exchange.receive(reply)
      budget -= 1
    }
    if let operation = current, operation.outcome == nil, operation.exchange.isComplete {
      finish(operation, on: session)
    } else if current == nil {
      _ = session.nextReply()  // lets libpq read notices, or the server's farewell
    }
    guard self.session != nil else { return }
    if !isAlive || session.isBroken {
      lose(current?.exchange.error ?? PostgresError(.connection, session.errorMessage.firstLine))
    } else {
      // Asked for again, because the replies may have started the next request.
      poll?.watch(session.flush() ? [.readable, .writable] : .readable)
    }
  }

  private func finish(_ operation: Operation, on session: Session) {
    var operation = operation
    if case .script = operation.request.body, !session.endScript() {
      return lose(PostgresError(.connection, session.errorMessage.firstLine))
    }
    if case .batch(let queries) = operation.request.body {
      for (name, index) in operation.exchange.prepared { statements.didPrepare(name, queries[index].statement) }
    }
    guard var error = operation.exchange.error else {
      if case .batch(let queries) = operation.request.body {
        for (rows, query) in zip(operation.exchange.rows, queries) { rows.noteStatement(query.statement) }
      }
      return settle(operation, .success(operation.exchange.rows))
    }
    if error.endsSession { return lose(error) }
    if Request.isStaleStatement(error) {
      statements.forgetAll()
      if !operation.hasRetried, session.isIdle, operation.interruption == nil {
        operation.hasRetried = true
        operation.isUnnamed = error.sqlState == SQLState.featureNotSupported
        current = nil
        return send(operation)
      }
      if error.sqlState != SQLState.featureNotSupported, configuration.preparedStatements {
        error.hint = "behind PgBouncer in transaction mode add prepared_statements=false to the URL"
      }
    }
    if let interruption = operation.interruption, error.sqlState == SQLState.queryCanceled {
      error = interruption
    } else if let state = error.sqlState, SQLState.mayComeFromSettings(state) {
      hasWrongSettings = true
    }
    settle(operation, .failure(error))
  }

  /// Answers the current operation, unless a cancel request is still under way.
  private func settle(_ operation: Operation, _ outcome: Result<[PostgresRows], PostgresError>) {
    if cancel != nil {
      current?.outcome = outcome
      return
    }
    current = nil
    operation.continuation.resume(returning: outcome)
    if !waiting.isEmpty { send(waiting.removeFirst()) }
  }

  // MARK: Interrupting

  private func interrupt(_ id: Int, with error: PostgresError) {
    if let index = waiting.firstIndex(where: { $0.id == id }) {
      return waiting.remove(at: index).continuation.resume(returning: .failure(error))
    }
    guard var operation = current, operation.id == id, operation.interruption == nil, operation.outcome == nil,
      let canceler = session?.canceler()
    else { return }
    operation.interruption = error
    operation.deadline = .now + Self.grace
    current = operation
    armTimer(operation.deadline)
    cancel = loop.task { [canceling] in
      try? await canceling.runAbandonably { canceler.send() }
      await self.cancelReturned()
    }
  }

  private func cancelReturned() {
    cancel = nil
    if let operation = current, let outcome = operation.outcome { settle(operation, outcome) }
  }

  private func armTimer(_ deadline: BootInstant) {
    if let timer, timer.at <= deadline { return }
    timer?.timer.cancel()
    timer = (
      deadline, loop.timer(after: deadline.remaining) { [weak self] in self?.assumeIsolated { $0.timerFired() } }
    )
  }

  /// One timer serves many requests: it gets a new time only when it fires.
  private func timerFired() {
    timer = nil
    guard let operation = current else { return }
    if operation.deadline > .now {
      armTimer(operation.deadline)
    } else if operation.interruption == nil {
      interrupt(operation.id, with: PostgresError(.timeout, "no answer within \(operation.request.timeout)"))
    } else {
      lose(operation.interruption ?? .canceledCall)
    }
  }

  // MARK: Ending

  private func lose(_ error: PostgresError, isLoss: Bool = true) {
    guard session != nil else { return }
    dropSession()
    endConnecting(error)
    if let operation = current {
      current = nil
      operation.continuation.resume(
        returning: operation.outcome ?? .failure(operation.request.loss(error, wasSent: true)))
    }
    let queued = waiting
    waiting = []
    for operation in queued {
      operation.continuation.resume(returning: .failure(operation.request.loss(error, wasSent: false)))
    }
    if isLoss { onLoss?() }
    onLoss = nil
  }

  private func dropSession() {
    poll?.close()
    poll = nil
    timer?.timer.cancel()
    timer = nil
    cancel?.cancel()
    session = nil
  }
}

extension PostgresError {
  static let canceledCall = PostgresError(.canceled, "the call was canceled")
}
