import ReelhaulSystem
import TaskCore
import TaskStore

/// The store in memory, for simulations and tests. It is also the simplest description of what a store does.
package final class MemoryStore: TaskStore {
  private let state: Lock<MemoryState>
  private let clock: @Sendable () -> Timestamp

  package init(
    clock: @escaping @Sendable () -> Timestamp = { Timestamp(microseconds: Clocks.realtimeMicroseconds()) }
  ) {
    self.clock = clock
    state = Lock(MemoryState(now: clock()))
  }

  /// Runs `body` as one transaction.
  func transaction<Result>(_ body: (inout MemoryState) -> Result) -> Result {
    state.withLock { state in
      state.now = clock()
      return body(&state)
    }
  }

  package func apply(_ commands: [Command]) async throws -> [CommandOutcome] {
    transaction { state in commands.map { state.apply($0) } }
  }

  package func topicPrefix() async throws -> String? {
    transaction { $0.topicPrefix }
  }

  package func bind(topicPrefix: String) async throws {
    let bound = transaction { state in
      let bound = state.topicPrefix ?? topicPrefix
      state.topicPrefix = bound
      return bound
    }
    guard bound == topicPrefix else {
      throw StoreError.otherFleet(OtherFleet(recorded: bound, configured: topicPrefix))
    }
  }

  package func register(_ worker: WorkerRegistration) async throws -> WorkerID {
    transaction { $0.register(worker) }
  }

  package func renew(_ worker: WorkerID, samples: [ProgressSample]) async throws -> Renewal {
    transaction { $0.renew(worker, samples: samples) }
  }

  package func announce(_ worker: WorkerID, volumes: [String: UniqueID]) async throws {
    transaction { $0.workers[worker]?.registration.volumes = volumes }
  }

  package func measure(_ worker: WorkerID, spaces: [String: StorageSpace]) async throws {}

  package func tell(_ worker: WorkerID, hostLimits: [String: HostLimit]) async throws {
    transaction { $0.workers[worker]?.hostLimits = hostLimits }
  }

  package func endOutages(of servers: [TaskServer: Duration]) async throws {
    transaction { $0.endOutages(of: servers) }
  }

  package func note(_ failures: [ServerFailure]) async throws -> [Bool] {
    transaction { state in failures.map { state.note($0) } }
  }

  package func limitedHosts() async throws -> Set<String> {
    transaction { state in
      Set(state.learnedLimits.filter { state.limit(of: .init(scope: .host, name: $0)) ?? .max <= $1 }.keys)
    }
  }

  package func leave(_ worker: WorkerID) async throws {
    transaction { $0.workers[worker]?.isDraining = true }
  }

  package func renewed(within time: Duration) async throws -> [WorkerID] {
    transaction { state in
      state.workers.filter { _, worker in
        !worker.isDead && !worker.isDraining
          && worker.leaseUntil.advanced(bySeconds: -worker.registration.leaseSeconds).microseconds
            > state.now.microseconds - time.microseconds
      }.map(\.key).sorted { $0.rawValue < $1.rawValue }
    }
  }

  package func time() async throws -> Timestamp { clock() }

  package func retire(_ worker: WorkerID) async throws {
    transaction { $0.retire(worker) }
  }

  package func claim(_ worker: WorkerID, limit: Int, call: Int64) async throws -> [Claim] {
    transaction { $0.claim(worker, limit: limit, call: call) }
  }

  package func demand(on worker: WorkerID) async throws -> Demand? {
    transaction { $0.demand(on: worker) }
  }

  package func checkpoint(_ writes: [CheckpointWrite]) async throws -> [Bool] {
    transaction { state in writes.map { state.checkpoint($0) } }
  }

  package func settle(_ settlements: [Settlement]) async throws -> [Bool] {
    transaction { state in settlements.map { state.settle($0) } }
  }

  package func sweep() async throws -> SweepResult {
    transaction { $0.sweep() }
  }

  package func putLearnedLimitsInForce() async throws {
    transaction { state in
      state.learnLimits()
      state.putOutagesInForce()
    }
  }

  /// A batch is applied at once.
  package func endStalledBatches(silentFor silence: Duration) async throws -> Int { 0 }

  /// Nothing of it goes wrong in this store.
  package func restLanes() async throws {}

  /// Does nothing: this store keeps no data of tasks that are gone.
  package func tidy() async throws {}

  /// Changes of web hooks end at once.
  package func goOnMovingHooks() async throws {}

  package func lead(_ worker: WorkerID, seconds: Int) async throws -> Bool {
    transaction { state in
      if let leader = state.leader, leader.worker != worker, leader.until >= state.now { return false }
      state.leader = (worker, state.now.advanced(bySeconds: seconds))
      return true
    }
  }

  package func pendingRows() async throws -> ClosedRange<Int64>? {
    transaction { state in
      guard let first = state.outbox.first, let last = state.outbox.last else { return nil }
      return first.row...last.row
    }
  }

  package func pendingEvents(limit: Int, bytes: Int, excluding excluded: [Int64]) async throws -> PendingEvents {
    transaction { $0.pendingEvents(limit: limit, excluding: Set(excluded)) }
  }

  package func doubtEvents() {}

  package func discardEvents(_ rows: [Int64]) async throws {
    let gone = Set(rows)
    transaction { $0.outbox.removeAll { gone.contains($0.row) } }
  }

  package func discardFirstEvents(_ batch: OutboxBatch) async throws {
    transaction { state in
      guard let index = state.outbox.firstIndex(where: { $0.row == batch.row }),
        let first = state.outbox[index].events.first, let published = batch.events.first, first == published
      else { return }
      state.outbox[index].events.removeFirst(batch.events.count)
    }
  }

  package func setLimit(_ scope: LimitScope, name: String, to limit: Int?) async throws {
    transaction { $0.limits[$0.bucket(scope, name)] = limit }
  }

  package func setWeight(queue: String, to weight: Double) async throws {
    transaction { $0.setWeight(queue, weight) }
  }

  package func limits() async throws -> [LimitUse] {
    transaction { $0.limitUses() }
  }

  package func tasks(_ ids: [UniqueID]) async throws -> [UniqueID: TaskDocument] {
    transaction { state in
      ids.reduce(into: [:]) { $0[$1] = state.document($1)?.explained(usable: state.usableStorage) }
    }
  }

  package func checkpoints(of tasks: [UniqueID]) async throws -> [UniqueID: Checkpoint] {
    transaction { state in tasks.reduce(into: [:]) { $0[$1] = state.tasks[$1]?.checkpoint } }
  }

  package func removed(among ids: [UniqueID]) async throws -> [UniqueID: Bool] {
    transaction { state in ids.reduce(into: [:]) { $0[$1] = state.removed[$1] } }
  }

  package func unfinished(derived ids: [UniqueID]) async throws -> Set<UniqueID> {
    transaction { state in
      let tasks = state.tasks.filter { !$0.value.machine.state.isFinal }.keys
      return Set(ids.filter { id in id.origins.contains { tasks.contains(where: $0.contains) } })
    }
  }

  package func states(of ids: [UniqueID]) async throws -> [UniqueID: TaskState] {
    transaction { state in ids.reduce(into: [:]) { $0[$1] = state.tasks[$1]?.machine.state } }
  }

  package func ids(ending: IDEnding, limit: Int) async throws -> [UniqueID] {
    transaction { state in Array(state.tasks.keys.filter(ending.matches).sorted(by: >).prefix(limit)) }
  }

  package func page(_ filter: TaskFilter) async throws -> TaskPage<TaskDocument> {
    transaction { $0.page(filter) }
  }

  package func workers() async throws -> [WorkerDocument] {
    transaction { $0.workerDocuments() }
  }

  package func backlog() async throws -> Backlog {
    transaction { $0.backlog() }
  }

  package func counts() async throws -> [TaskState: Int] {
    transaction { state in state.tasks.values.reduce(into: [:]) { $0[$1.machine.state, default: 0] += 1 } }
  }

  package func audit() async throws -> [String] {
    transaction { $0.audit() }
  }
}

// Changes of time, for tests and simulations.
extension MemoryStore {
  /// Ends the worker's lease now.
  package func expireLease(of worker: WorkerID) {
    transaction { $0.workers[worker]?.leaseUntil = Timestamp(microseconds: $0.now.microseconds - 1) }
  }

  /// Asks all workers to end.
  package func drainWorkers() {
    transaction { state in for id in state.workers.keys { state.workers[id]?.isDraining = true } }
  }

  /// Lets the deliveries of a task wait for so many days already.
  package func ageHooks(of task: UniqueID, days: Int) {
    transaction { state in
      for index in state.hooks.indices where state.hooks[index].delivery.event.taskID == task {
        let createdAt = state.hooks[index].delivery.createdAt
        state.hooks[index].delivery.createdAt = createdAt.advanced(bySeconds: -days * 86_400)
      }
    }
  }

  /// Makes all clean-ups due now.
  package func makeCleanupsDue() {
    transaction { state in for id in state.cleanups.keys { state.cleanups[id]?.runAt = state.now } }
  }

  /// Makes a delayed task due now.
  package func makeDue(_ task: UniqueID) {
    transaction { state in
      if case .delayed? = state.tasks[task]?.place { state.tasks[task]?.place = .delayed(until: state.now) }
    }
  }
}
