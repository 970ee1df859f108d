import ReelhaulSystem
import TaskCore
import TaskStore

/// The state of ``MemoryStore``. Its methods are the transactions; `now` is the time of the transaction.
///
/// ``TaskMachine`` decides about every move of a task, and this type carries out its actions.
struct MemoryState {
  struct Worker {
    var registration: WorkerRegistration
    var startedAt: Timestamp
    var leaseUntil: Timestamp
    /// The number of its last claim call.
    var claimCall: Int64 = 0
    var isDead = false
    var isDraining = false
    /// How many tasks of these hosts it can make use of at once.
    var hostLimits: [String: HostLimit] = [:]
  }

  /// A scope whose running tasks are counted and can be limited.
  struct Bucket: Hashable {
    var scope: LimitScope
    var name: String
  }

  /// The state of fair queueing. All queues that could have started a task earn a share of each start, and the queue
  /// that starts it pays for it.
  struct Queue {
    var weight = 1.0
    /// Rises by 1 / weight for each start of the queue; the queue is owed (virtual time - tag) * weight tasks. While
    /// the queue is idle, the tag is relative to the virtual time.
    var tag = 0.0
    /// Whether no task waits.
    var isIdle = true
    /// The virtual time of its last start.
    var servedAt = 0.0
  }

  var now: Timestamp
  var topicPrefix: String?
  var tasks: [UniqueID: MemoryTask] = [:]
  /// The ids of removed tasks, and whether these had succeeded. A submit that is delivered again does not create them
  /// again.
  var removed: [UniqueID: Bool] = [:]
  /// The specifications of removed tasks.
  var removedSpecs: [UniqueID: TaskSpec] = [:]
  /// The answers to control commands.
  var inbox: [UniqueID: CommandOutcome] = [:]
  var workers: [WorkerID: Worker] = [:]
  /// The limits that an operator has set.
  var limits: [Bucket: Int] = [:]
  /// The limits that workers have learned, by host.
  var learnedLimits: [String: Int] = [:]
  /// Servers that have served tasks and do so no more.
  var outages: [TaskServer: MemoryOutage] = [:]
  /// The limits that follow from them, by host.
  var outageLimits: [String: Int] = [:]
  /// The limits that handlers declare, by kind.
  var declaredLimits: [String: Int] = [:]
  /// Of former names of kinds: the name that counts.
  var presentNames: [String: String] = [:]
  var queues: [String: Queue] = [:]
  /// Rises by 1 / (sum of the weights of the due queues) for each start.
  var virtualTime = 0.0
  var outbox: [OutboxBatch] = []
  var cleanups: [Int64: MemoryCleanup] = [:]
  /// In the order of tasks and sequences.
  var hooks: [MemoryHook] = []
  var queueHooks: [String: String] = [:]
  var lastCleanup: Int64 = 0
  var leader: (worker: WorkerID, until: Timestamp)?
  var lastWorker: Int32 = 0
  var lastRow: Int64 = 0
  var lastPosition = 0
  /// Who asked for the command that is being carried out.
  var actor: String?

  /// Moves a task as the machine decides; returns the actions that were carried out.
  @discardableResult
  mutating func move(_ id: UniqueID, _ event: TaskMachine.Event) throws(IllegalTransition) -> [TaskMachine.Action] {
    guard var task = tasks[id] else { return [] }
    let actions = try task.machine.handle(event)
    task.finishedAt = task.machine.state.isFinal ? task.finishedAt ?? now : nil
    tasks[id] = task
    for action in actions { perform(action, on: id) }
    if let task = tasks[id], task.machine.state == .canceled {
      leaveToCleanUp(task, files: false)
      tasks[id]?.checkpoint = nil
      tasks[id]?.error = nil
    }
    return actions
  }

  mutating func perform(_ action: TaskMachine.Action, on id: UniqueID) {
    switch action {
    case .enqueue(let place): enqueue(id, place)
    case .dequeue: tasks[id]?.place = nil
    // `claim` begins the run itself.
    case .beginRun: break
    // Renewals read the intents themselves from the machine.
    case .tellWorker: tasks[id]?.intentActor = actor
    case .withdrawIntent: tasks[id]?.intentActor = nil
    case .endRun:
      let boot = tasks[id].flatMap(boot(of:))
      tasks[id]?.endRun(boot: boot)
    case .setPriority(let priority):
      tasks[id]?.spec.priority = priority
      if case .ready = tasks[id]?.place { append(id) }
    case .satisfyDependents: satisfy(after: id)
    case .delete:
      let task = tasks.removeValue(forKey: id)
      removed[id] = task?.machine.state == .succeeded
      removedSpecs[id] = task?.spec
    case .publish(let kind): publish(kind, id)
    }
  }

  private mutating func publish(_ kind: TaskEvent.Kind, _ id: UniqueID) {
    lastRow += 1
    var actor = actor
    if [.paused, .canceled].contains(kind) {
      actor = actor ?? tasks[id]?.intentActor
      tasks[id]?.intentActor = nil
    }
    outbox.append(
      OutboxBatch(
        row: lastRow, kind: kind, at: now, events: [(id, tasks[id]?.machine.sequence ?? 0)], actor: actor))
  }

  private mutating func enqueue(_ id: UniqueID, _ place: TaskMachine.QueuePlace) {
    switch place {
    case .front:
      lastPosition += 1
      tasks[id]?.place = .ready(position: lastPosition - (1 << 62))
    case .back: append(id, notBefore: tasks[id]?.spec.notBefore)
    case .after(let delay): append(id, notBefore: now.advanced(by: delay))
    }
  }

  /// Lets a queued task wait for its time, or at the end of all tasks that may run now.
  mutating func append(_ id: UniqueID, notBefore: Timestamp? = nil) {
    if let notBefore, notBefore > now {
      tasks[id]?.place = .delayed(until: notBefore)
    } else {
      lastPosition += 1
      tasks[id]?.place = .ready(position: lastPosition)
    }
  }

  private mutating func satisfy(after id: UniqueID) {
    for waiting in tasks.values.filter({ $0.waitsFor.contains(id) }).map(\.spec.id).sorted() {
      tasks[waiting]?.waitsFor.remove(id)
      if tasks[waiting]?.waitsFor.isEmpty == true { _ = try? move(waiting, .dependenciesSatisfied) }
    }
  }

  /// What limits a task.
  func buckets(of task: MemoryTask) -> [Bucket] {
    presentNames.isEmpty ? task.buckets : task.buckets.map { bucket($0.scope, $0.name) }
  }

  /// What counts for a name; the former name of a kind counts as the kind.
  func bucket(_ scope: LimitScope, _ name: String) -> Bucket {
    Bucket(scope: scope, name: scope == .kind ? presentNames[name] ?? name : name)
  }

  /// The valid limit; nil for no limit.
  func limit(of bucket: Bucket) -> Int? {
    switch bucket.scope {
    case .kind: limits[bucket] ?? declaredLimits[bucket.name]
    case .host: [limits[bucket] ?? learnedLimits[bucket.name], outageLimits[bucket.name]].compactMap(\.self).min()
    case .total, .queue, .storage: limits[bucket]
    }
  }

  /// What the workers that can run its tasks can make use of together. Nothing of a host of which no task stands in line, or
  /// of which a worker that told nothing has tasks.
  mutating func learnLimits() {
    let live = workers.filter { !$0.value.isDead && $0.value.leaseUntil > now }
    learnedLimits = [:]
    for host in Set(live.values.flatMap(\.hostLimits.keys)) {
      let told = live.compactMapValues { $0.hostLimits[host] }
      let runs = tasks.values.filter {
        $0.run != nil && buckets(of: $0).contains(Bucket(scope: .host, name: host))
      }
      let untold = live.filter { told[$0.key] == nil }
      let lines = told.values.filter { !$0.isRefusing }
      guard !lines.isEmpty, !runs.contains(where: { $0.run.map { untold[$0.worker] != nil } ?? false })
      else { continue }
      let able = untold.values.count { worker in
        !worker.isDraining
          && runs.contains { task in
            let storage = LaneKey(task.spec).storage
            return worker.registration.kinds.contains(task.spec.kind)
              && (storage.isEmpty || worker.registration.volumes[storage] != nil)
          }
      }
      let each = Double(lines.reduce(0) { $0 + $1.most }) / Double(lines.count)
      let most = Double(told.values.reduce(0) { $0 + $1.most }) + each * Double(able)
      learnedLimits[host] = Int(most.rounded(.up))
    }
  }

  func boot(of task: MemoryTask) -> UniqueID? {
    task.run.flatMap { workers[$0.worker]?.registration.boot }
  }
}

extension Timestamp {
  func advanced(bySeconds seconds: Int) -> Timestamp {
    Timestamp(microseconds: microseconds + Int64(seconds) * 1_000_000)
  }

  func advanced(by duration: Duration) -> Timestamp {
    Timestamp(microseconds: microseconds + duration.microseconds)
  }
}
