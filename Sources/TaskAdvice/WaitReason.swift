import TaskCore
import TaskStore

/// Why a task that could run does not run.
package enum WaitReason {
  /// The most predecessors that are named.
  private static let named = 5

  /// The reasons, by task id, of tasks that wait for more than their time or their turn.
  package static func of(_ tasks: [TaskDocument], in store: any TaskReader & FleetReader) async throws -> [UniqueID:
    String]
  {
    var reasons: [UniqueID: String] = [:]
    let blocked = tasks.filter { $0.state == .blocked }
    if !blocked.isEmpty {
      let states = try await store.states(ofPredecessors: Array(Set(blocked.flatMap(\.spec.after))))
      for task in blocked { reasons[task.spec.id] = predecessors(of: task, states: states) }
    }
    let queued = tasks.filter { $0.state == .queued }
    if !queued.isEmpty {
      let (workers, limits) = (
        try await store.workers(), try await store.limits().filter { $0.isReached || $0.outage != nil }
      )
      for task in queued { reasons[task.spec.id] = of(task, workers: workers, limits: limits) }
    }
    return reasons
  }

  /// A sentence about what somebody must do before the task continues; nil if nothing. The task is paused, or a
  /// predecessor is paused, failed or canceled. `states` are the states of its predecessors.
  package static func hold(of task: TaskDocument, states: [UniqueID: TaskState]) -> String? {
    if task.state == .paused { return "\(task.title) is paused: 'reelhaul resume \(task.spec.id)' continues it." }
    guard task.spec.after.contains(where: { [.failed, .canceled, .paused].contains(states[$0]) }) else { return nil }
    return predecessors(of: task, states: states).map { "\(task.title) waits \($0)." }
  }

  /// The unfinished predecessors of a blocked task, and what each needs. `states` are the states of its predecessors.
  package static func predecessors(of task: TaskDocument, states: [UniqueID: TaskState]) -> String? {
    let open = task.spec.after.filter { states[$0] != .succeeded }
    guard task.state == .blocked, !open.isEmpty else { return nil }
    let names = open.prefix(named).map { id in
      switch states[id] {
      case nil:
        "\(id) (it does not exist: submit it, or cancel this task; the id of a removed task is not free for 17 days)"
      case .failed, .canceled, .paused:
        "\(id) (\(states[id]?.rawValue ?? ""): 'reelhaul \(states[id] == .paused ? "resume" : "retry") \(id)')"
      case .blocked: "\(id) (also blocked: 'reelhaul show \(id)')"
      case let state?: "\(id) (\(state.rawValue))"
      }
    }
    let others = open.count > named ? [" and \(open.count - named) others"] : []
    return "for \(names.joined(separator: ", "))\(others.joined())"
  }

  /// The reason as text, with what to do about it. Nil if the task does not wait, or waits only for its time or its
  /// turn.
  package static func of(_ task: TaskDocument, workers: [WorkerDocument], limits: [LimitUse]) -> String? {
    guard task.state == .queued, task.status == TaskState.queued.rawValue else { return nil }
    guard workers.contains(where: \.isLive) else {
      return "for a worker: no worker is live, start one with 'reelhaul worker'"
    }
    let lane = LaneKey(task.spec)
    let able = workers.filter { $0.isLive && $0.kinds.contains(lane.kind) }
    guard !able.isEmpty else {
      return "for a worker with a handler for the kind \(lane.kind.rawValue): no live worker has one"
    }
    // Not taken from the task's error, which says why it was handed back some time ago.
    if let reason = storages(of: lane, able) { return reason }
    let names: [LimitScope: [String]] = [
      .total: [""], .kind: [lane.kind.rawValue], .queue: [lane.queue], .host: [lane.host],
      .storage: lane.storages.isEmpty ? [""] : lane.storages,
    ]
    let isItsOwn = { (limit: LimitUse) in names[limit.scope]?.contains { limit.isOf(limit.scope, $0) } == true }
    let own = limits.filter(isItsOwn)
    if let host = own.first(where: \.isOut), let outage = host.outage {
      return """
        for \(host.name): it has served no task since \(outage.since) (\(outage.code)). One at a time asks again, and no \
        attempt is counted
        """
    }
    guard let full = own.first(where: { $0.isReached && $0.outageLimit == nil }), let limit = full.limit else {
      return nil
    }
    let what = full.name.isEmpty ? full.scope.rawValue : "\(full.scope.rawValue) \(full.name)"
    let both = full.scope == .storage ? lane.pair.map { " in the storages \($0.inWords)" } ?? "" : ""
    let why = limit == full.learned ? ", because more of its tasks would stand in line" : ""
    return "for a free place\(both): \(full.running) run, and the limit of \(what) is \(limit)\(why)"
  }

  /// The storages that no worker has; with two, both and which of them it is. `able` are the workers that have a handler.
  private static func storages(of lane: LaneKey, _ able: [WorkerDocument]) -> String? {
    let usable = able.map { Set($0.volumes.keys) }
    guard let pair = lane.pair else {
      return lane.lack(of: usable).map { "for \($0): no live worker can use it" }
    }
    return pair.lack(of: usable).map { "for the storages \(pair.inWords): \($0)" }
  }
}

extension StoragePair {
  /// Both, and what each is for.
  package var inWords: String { "\(source) (source) and \(destination) (destination)" }
}
