import Glibc
import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore

/// A store that passes calls to another store, and that a test can make unreachable.
final class TestStore: TaskStore {
  private struct Faults {
    var isAway = false
    /// The number of claims that are carried out but whose answers get lost.
    var lostClaims = 0
    /// Whether claims that have found tasks wait with their answers, and how many do.
    var holdsClaims = false
    var heldClaims = 0
    /// How often no hook can be added.
    var failedHookAdditions = 0
    /// Batches with this task are refused.
    var poison: UniqueID?
    /// Whether the store refuses all commands.
    var isForbidden = false
    /// By how much the store's clock is behind.
    var isBehind = Duration.zero
    var refusals = 0
    var sweeps = 0
    var cleanupClaimsTake = Duration.zero
    var cleanupClaims = 0
    var mostCleanupClaims = 0
    var finishedCleanups: [Int64] = []
    var postponedCleanups: [Int64] = []
    var cleanupDelays: [Duration] = []
    var refusesSuccess = false
    var tidies = 0
    var stallChecks = 0
    var rests = 0
    var hookMoves = 0
    var refusesSteps = false
    var hookFailures = 0
    var relayThreads: Set<String> = []
    var onCheckpoint: (@Sendable () -> Void)?
  }

  let inner: MemoryStore
  private let faults = Lock(Faults())

  init(_ inner: MemoryStore = MemoryStore()) {
    self.inner = inner
  }

  func setAway(_ isAway: Bool) { faults.withLock { $0.isAway = isAway } }

  func loseClaims(_ count: Int) { faults.withLock { $0.lostClaims = count } }

  /// From now on, or no more, claims that have found tasks wait with their answers.
  func holdClaims(_ holds: Bool) { faults.withLock { $0.holdsClaims = holds } }
  var heldClaims: Int { faults.withLock { $0.heldClaims } }

  func failHookAdditions(_ count: Int) { faults.withLock { $0.failedHookAdditions = count } }

  func setBehind(by time: Duration) { faults.withLock { $0.isBehind = time } }

  func poison(_ task: UniqueID) { faults.withLock { $0.poison = task } }

  func setForbidden(_ isForbidden: Bool) { faults.withLock { $0.isForbidden = isForbidden } }

  /// Calls `body` whenever checkpoints are recorded, before the callers know.
  func onCheckpoint(_ body: @escaping @Sendable () -> Void) { faults.withLock { $0.onCheckpoint = body } }

  /// Calls that were refused because nothing may be applied.
  var refusals: Int { faults.withLock { $0.refusals } }

  var sweeps: Int { faults.withLock { $0.sweeps } }

  /// From now on the ends of runs that have succeeded are refused.
  func refuseSuccess() { faults.withLock { $0.refusesSuccess = true } }

  /// How often the store was tidied, and asked to go on with the changes of web hooks.
  var stallChecks: Int { faults.withLock { $0.stallChecks } }
  var tidies: Int { faults.withLock { $0.tidies } }
  var rests: Int { faults.withLock { $0.rests } }
  var hookMoves: Int { faults.withLock { $0.hookMoves } }
  /// The first rest of lanes and all changes of web hooks fail.
  func refuseSteps() { faults.withLock { $0.refusesSteps = true } }

  /// From now on a claim of clean-ups takes so long.
  func delayCleanupClaims(by time: Duration) { faults.withLock { $0.cleanupClaimsTake = time } }
  /// How many claims of clean-ups were under way at once.
  var mostCleanupClaims: Int { faults.withLock { $0.mostCleanupClaims } }
  /// Clean-ups that a worker has done, and those that it could not do.
  var finishedCleanups: [Int64] { faults.withLock { $0.finishedCleanups } }
  var postponedCleanups: [Int64] { faults.withLock { $0.postponedCleanups } }
  /// How long those wait.
  var cleanupDelays: [Duration] { faults.withLock { $0.cleanupDelays } }

  /// Deliveries to web hooks that could not be recorded.
  var hookFailures: Int { faults.withLock { $0.hookFailures } }

  /// The threads that read events.
  var relayThreads: Set<String> { faults.withLock { $0.relayThreads } }

  private static func threadName() -> String {
    guard let file = fopen("/proc/thread-self/comm", "r") else { return "" }
    defer { fclose(file) }
    var name = [UInt8](repeating: 0, count: 32)
    let count = fread(&name, 1, name.count, file)
    return String(decoding: name[..<count].filter { $0 > 32 }, as: UTF8.self)
  }

  private func reach() throws {
    if faults.withLock({ $0.isAway }) { throw StoreError.unavailable("away") }
  }

  func apply(_ commands: [Command]) async throws -> [CommandOutcome] {
    try reach()
    let isForbidden = faults.withLock { faults in
      if faults.isForbidden { faults.refusals += 1 }
      return faults.isForbidden
    }
    if isForbidden { throw StoreError.failed("permission denied for table task", isServersFault: true) }
    if let poison = faults.withLock({ $0.poison }), commands.contains(where: { $0.taskID == poison }) {
      throw StoreError.failed("untranslatable character")
    }
    return try await inner.apply(commands)
  }

  func claimCleanups(_ worker: WorkerID, limit: Int, except busy: Set<CleanupLine>) async throws -> [Cleanup] {
    try reach()
    let wait = faults.withLock { faults in
      faults.cleanupClaims += 1
      faults.mostCleanupClaims = max(faults.mostCleanupClaims, faults.cleanupClaims)
      return faults.cleanupClaimsTake
    }
    defer { faults.withLock { $0.cleanupClaims -= 1 } }
    try await Task.sleep(for: wait)
    return try await inner.claimCleanups(worker, limit: limit, except: busy)
  }

  func finishCleanups(_ ids: [Int64]) async throws {
    try reach()
    try await inner.finishCleanups(ids)
    faults.withLock { $0.finishedCleanups += ids }
  }

  func returnCleanups(_ ids: [Int64]) async throws {
    try reach()
    try await inner.returnCleanups(ids)
  }

  func postponeCleanup(_ id: Int64, after delay: Duration, error: String) async throws {
    try reach()
    try await inner.postponeCleanup(id, after: delay, error: error)
    faults.withLock { faults in
      faults.postponedCleanups.append(id)
      faults.cleanupDelays.append(delay)
    }
  }

  func addHooks(_ events: [HookEvent]) async throws {
    try reach()
    let fails = faults.withLock { faults in
      faults.failedHookAdditions -= 1
      return faults.failedHookAdditions >= 0
    }
    if fails { throw StoreError.unavailable("no hook can be added") }
    try await inner.addHooks(events)
  }

  func claimHooks(
    _ worker: WorkerID, limit: Int, perHost: Int, besides underWay: [String: Int], failing: Set<String>, places: Int
  ) async throws -> [HookDelivery] {
    try reach()
    return try await inner.claimHooks(
      worker, limit: limit, perHost: perHost, besides: underWay, failing: failing, places: places)
  }

  func finishHook(_ task: UniqueID, sequence: Int) async throws {
    do {
      try reach()
    } catch {
      faults.withLock { $0.hookFailures += 1 }
      throw error
    }
    try await inner.finishHook(task, sequence: sequence)
  }

  func postponeHook(_ task: UniqueID, sequence: Int, after delay: Duration, error: String) async throws {
    try reach()
    try await inner.postponeHook(task, sequence: sequence, after: delay, error: error)
  }

  func giveUpHook(_ task: UniqueID, sequence: Int, error: String) async throws -> Int {
    try reach()
    return try await inner.giveUpHook(task, sequence: sequence, error: error)
  }

  func undeliveredHooks(of task: UniqueID) async throws -> [HookDelivery] {
    try await inner.undeliveredHooks(of: task)
  }

  func queueHooks() async throws -> [String: String] { try await inner.queueHooks() }

  func setQueueHook(_ queue: String, to url: String?) async throws { try await inner.setQueueHook(queue, to: url) }

  func topicPrefix() async throws -> String? { try await inner.topicPrefix() }

  func bind(topicPrefix: String) async throws {
    try reach()
    try await inner.bind(topicPrefix: topicPrefix)
  }

  func register(_ worker: WorkerRegistration) async throws -> WorkerID {
    try reach()
    return try await inner.register(worker)
  }

  func renew(_ worker: WorkerID, samples: [ProgressSample]) async throws -> Renewal {
    try reach()
    return try await inner.renew(worker, samples: samples)
  }

  func measure(_ worker: WorkerID, spaces: [String: StorageSpace]) async throws {
    try reach()
    try await inner.measure(worker, spaces: spaces)
  }

  func tell(_ worker: WorkerID, hostLimits: [String: HostLimit]) async throws {
    try reach()
    try await inner.tell(worker, hostLimits: hostLimits)
  }

  func endOutages(of servers: [TaskServer: Duration]) async throws {
    try reach()
    try await inner.endOutages(of: servers)
  }

  func note(_ failures: [ServerFailure]) async throws -> [Bool] {
    try reach()
    return try await inner.note(failures)
  }

  func limitedHosts() async throws -> Set<String> {
    try reach()
    return try await inner.limitedHosts()
  }

  func announce(_ worker: WorkerID, volumes: [String: UniqueID]) async throws {
    try reach()
    try await inner.announce(worker, volumes: volumes)
  }

  func time() async throws -> Timestamp {
    try reach()
    let behind = faults.withLock { $0.isBehind }
    return Timestamp(microseconds: try await inner.time().microseconds - behind.microseconds)
  }

  func retire(_ worker: WorkerID) async throws {
    try reach()
    try await inner.retire(worker)
  }

  func claim(_ worker: WorkerID, limit: Int, call: Int64) async throws -> [Claim] {
    try reach()
    let claims = try await inner.claim(worker, limit: limit, call: call)
    if !claims.isEmpty {
      faults.withLock { $0.heldClaims += 1 }
      defer { faults.withLock { $0.heldClaims -= 1 } }
      while faults.withLock({ $0.holdsClaims }) { try? await Task.sleep(for: .milliseconds(5)) }
    }
    let isLost = faults.withLock { faults in
      guard !claims.isEmpty, faults.lostClaims > 0 else { return false }
      faults.lostClaims -= 1
      return true
    }
    if isLost { throw StoreError.unavailable("the answer was lost") }
    return claims
  }

  func demand(on worker: WorkerID) async throws -> Demand? {
    try reach()
    return try await inner.demand(on: worker)
  }

  func checkpoint(_ writes: [CheckpointWrite]) async throws -> [Bool] {
    try reach()
    let answers = try await inner.checkpoint(writes)
    faults.withLock { $0.onCheckpoint }?()
    return answers
  }

  func settle(_ settlements: [Settlement]) async throws -> [Bool] {
    try reach()
    let hasSuccess = settlements.contains { if case .succeeded = $0.outcome { true } else { false } }
    if hasSuccess, faults.withLock({ $0.refusesSuccess }) { throw StoreError.failed("no") }
    return try await inner.settle(settlements)
  }

  func sweep() async throws -> SweepResult {
    faults.withLock { $0.sweeps += 1 }
    try reach()
    return try await inner.sweep()
  }

  func putLearnedLimitsInForce() async throws {
    try reach()
    try await inner.putLearnedLimitsInForce()
  }

  func endStalledBatches(silentFor silence: Duration) async throws -> Int {
    faults.withLock { $0.stallChecks += 1 }
    return 1
  }

  func restLanes() async throws {
    let isRefused = faults.withLock { faults in
      faults.rests += 1
      return faults.refusesSteps && faults.rests == 1
    }
    if isRefused { throw StoreError.failed("no rest") }
    try reach()
    try await inner.restLanes()
  }

  func tidy() async throws {
    faults.withLock { $0.tidies += 1 }
    try reach()
    try await inner.tidy()
  }

  func goOnMovingHooks() async throws {
    let isRefused = faults.withLock { faults in
      faults.hookMoves += 1
      return faults.refusesSteps
    }
    if isRefused { throw StoreError.failed("no hooks") }
    try reach()
    try await inner.goOnMovingHooks()
  }

  func setLimit(_ scope: LimitScope, name: String, to limit: Int?) async throws {
    try await inner.setLimit(scope, name: name, to: limit)
  }

  func setWeight(queue: String, to weight: Double) async throws {
    try await inner.setWeight(queue: queue, to: weight)
  }

  func limits() async throws -> [LimitUse] {
    try await inner.limits()
  }

  func lead(_ worker: WorkerID, seconds: Int) async throws -> Bool {
    try reach()
    return try await inner.lead(worker, seconds: seconds)
  }

  func pendingRows() async throws -> ClosedRange<Int64>? {
    try reach()
    return try await inner.pendingRows()
  }

  func pendingEvents(limit: Int, bytes: Int, excluding excluded: [Int64]) async throws -> PendingEvents {
    let thread = Self.threadName()
    faults.withLock { _ = $0.relayThreads.insert(thread) }
    try reach()
    return try await inner.pendingEvents(limit: limit, bytes: bytes, excluding: excluded)
  }

  func doubtEvents() { inner.doubtEvents() }

  func discardEvents(_ rows: [Int64]) async throws {
    try reach()
    try await inner.discardEvents(rows)
  }

  func discardFirstEvents(_ batch: OutboxBatch) async throws {
    try reach()
    try await inner.discardFirstEvents(batch)
  }

  func tasks(_ ids: [UniqueID]) async throws -> [UniqueID: TaskDocument] { try await inner.tasks(ids) }

  func removed(among ids: [UniqueID]) async throws -> [UniqueID: Bool] { try await inner.removed(among: ids) }

  func unfinished(derived ids: [UniqueID]) async throws -> Set<UniqueID> { try await inner.unfinished(derived: ids) }

  func states(of ids: [UniqueID]) async throws -> [UniqueID: TaskState] {
    try reach()
    return try await inner.states(of: ids)
  }

  func leave(_ worker: WorkerID) async throws {
    try reach()
    try await inner.leave(worker)
  }

  func renewed(within time: Duration) async throws -> [WorkerID] {
    try reach()
    return try await inner.renewed(within: time)
  }

  func ids(ending: IDEnding, limit: Int) async throws -> [UniqueID] {
    try await inner.ids(ending: ending, limit: limit)
  }

  func page(_ filter: TaskFilter) async throws -> TaskPage<TaskDocument> { try await inner.page(filter) }

  func checkpoints(of tasks: [UniqueID]) async throws -> [UniqueID: Checkpoint] {
    try await inner.checkpoints(of: tasks)
  }

  func workers() async throws -> [WorkerDocument] { try await inner.workers() }

  func backlog() async throws -> Backlog { try await inner.backlog() }

  func waitingHooks() async throws -> [HookBacklog] { try await inner.waitingHooks() }

  func counts() async throws -> [TaskState: Int] { try await inner.counts() }

  func gauges() async throws -> FleetGauges { try await inner.gauges() }

  func audit() async throws -> [String] { try await inner.audit() }
}
