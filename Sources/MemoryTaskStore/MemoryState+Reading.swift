import TaskCore
import TaskStore

extension MemoryState {
  func document(_ id: UniqueID) -> TaskDocument? {
    tasks[id].map { $0.document(boot: boot(of: $0)) }
  }

  /// For each live worker, the storages that it can use.
  var usableStorage: [Set<String>] {
    workers.values.filter { !$0.isDead && $0.leaseUntil > now }.map { Set($0.registration.volumes.keys) }
  }

  func page(_ filter: TaskFilter) -> TaskPage<TaskDocument> {
    let found = tasks.values.map { $0.document(boot: boot(of: $0)) }
      .filter { filter.fits($0, now: now) }
      .sorted { ($0.createdAt, $0.spec.id) < ($1.createdAt, $1.spec.id) }
    let ordered = filter.order == .oldestFirst ? found : found.reversed()
    let page = ordered.prefix(filter.limit).map { $0.explained(usable: usableStorage) }
    return TaskPage(tasks: page, next: ordered.count > page.count ? page.last?.place : nil)
  }

  func pendingEvents(limit: Int, excluding excluded: Set<Int64>) -> PendingEvents {
    var pending = PendingEvents()
    pending.batches = Array(outbox.lazy.filter { !excluded.contains($0.row) }.prefix(limit))
    for (task, _) in pending.batches.lazy.flatMap(\.events) {
      pending.tasks[task] = document(task)
      pending.removed[task] = removedSpecs[task]
    }
    return pending
  }

  func workerDocuments() -> [WorkerDocument] {
    workers.sorted { $0.key.rawValue < $1.key.rawValue }.map { id, worker in
      let runs = tasks.values.compactMap(\.run).filter { $0.worker == id }
      return WorkerDocument(
        id: worker.registration.boot, host: worker.registration.host, pid: worker.registration.pid,
        startedAt: worker.startedAt, leaseUntil: worker.leaseUntil, isLive: !worker.isDead && worker.leaseUntil > now,
        running: runs.count, kinds: Set(worker.registration.kinds), volumes: worker.registration.volumes,
        labels: worker.registration.labels, bytesPerSecond: runs.reduce(0) { $0 + ($1.rate ?? 0) },
        isDraining: worker.isDraining, version: worker.registration.version,
        leaseAge: .microseconds(
          now.microseconds - worker.leaseUntil.advanced(bySeconds: -worker.registration.leaseSeconds).microseconds))
    }
  }

  func backlog() -> Backlog {
    var backlog = Backlog()
    for task in tasks.values {
      guard case .ready? = task.place else { continue }
      let lane = LaneKey(task.spec)
      backlog.kinds.insert(lane.kind)
      backlog.storages.formUnion(lane.storages)
      if let pair = lane.pair { backlog.pairs.insert(pair) }
    }
    if let first = outbox.first { backlog.eventAge = .microseconds(now.microseconds - first.at.microseconds) }
    return backlog
  }

  func limitUses() -> [LimitUse] {
    var running: [Bucket: Int] = [:]
    for task in tasks.values where task.run != nil {
      for bucket in buckets(of: task) { running[bucket, default: 0] += 1 }
    }
    let weighted = queues.filter { $0.value.weight != 1 }.keys.map { Bucket(scope: .queue, name: $0) }
    let declared = declaredLimits.keys.map { Bucket(scope: .kind, name: $0) }
    let out = outages.filter { $0.value.isOn(now: now) }.map { Bucket(scope: .host, name: $0.key.host) }
    let named = Set(running.keys).union(limits.keys).union(weighted).union(declared).union(out).filter {
      !$0.name.isEmpty
    }
    return (named.union([Bucket(scope: .total, name: "")])).map { bucket in
      LimitUse(
        scope: bucket.scope, name: bucket.name, running: running[bucket] ?? 0, limit: limit(of: bucket),
        weight: bucket.scope == .queue ? queues[bucket.name]?.weight ?? 1 : nil,
        declared: bucket.scope == .kind ? declaredLimits[bucket.name] : nil,
        learned: bucket.scope == .host ? learnedLimits[bucket.name] : nil,
        outage: bucket.scope == .host ? outage(of: bucket.name) : nil,
        outageLimit: bucket.scope == .host ? outageLimits[bucket.name] : nil,
        formerNames: bucket.scope == .kind
          ? presentNames.filter { $0.value == bucket.name }.keys.sorted() : [])
    }.inOrder()
  }

  func audit() -> [String] {
    var violations: [String] = []
    for (id, task) in tasks {
      let state = task.machine.state
      func check(_ holds: Bool, _ violation: String) {
        if !holds { violations.append("task \(id) is \(state.rawValue) and \(violation)") }
      }
      check((task.place != nil) == (state == .queued), "waits at \(String(describing: task.place))")
      check((task.run != nil) == state.isOwned, "runs at \(String(describing: task.run))")
      check(task.run.map { workers[$0.worker] != nil } ?? true, "its worker does not exist")
      check(task.machine.waitsForOthers == !task.waitsFor.isEmpty, "waits for \(task.waitsFor.count) others")
      check(state != .blocked || !task.waitsFor.isEmpty, "waits for no task")
      check(state != .canceled && state != .succeeded || task.checkpoint == nil, "has a checkpoint")
      check((task.finishedAt != nil) == state.isFinal, "ended at \(String(describing: task.finishedAt))")
    }
    return violations
  }
}

extension TaskDocument {
  fileprivate var place: TaskCursor { TaskCursor(createdAt: createdAt, id: spec.id) }
}

extension TaskFilter {
  fileprivate func fits(_ task: TaskDocument, now: Timestamp) -> Bool {
    let words = [task.status(now: now), TaskStatus(rawValue: task.state.rawValue)]
    let text = text.map { $0.lowercased() } ?? ""
    let texts =
      [task.spec.id.description]
      + [task.spec.source, task.spec.destination ?? ""].map {
        String(URLRedaction.redact($0).prefix { $0 != "?" }).lowercased()
      }
    let place = TaskCursor(createdAt: task.createdAt, id: task.spec.id)
    return (states.isEmpty || words.contains { $0.map(states.contains) == true })
      && (queues.isEmpty || queues.contains(task.spec.queue)) && (kinds.isEmpty || kinds.contains(task.spec.kind))
      && (hosts.isEmpty || hosts.contains(LaneKey(task.spec).host))
      && (codes.isEmpty || task.error.map { codes.contains($0.code.rawValue) } == true)
      && labels.allSatisfy { name, value in
        task.spec.labels[name].map { label in value.map { $0 == label } ?? true } ?? false
      }
      && (text.isEmpty || texts.contains { $0.contains(text) })
      && createdAfter.map { task.createdAt >= $0 } != false && createdBefore.map { task.createdAt < $0 } != false
      && cursor.map { order == .oldestFirst ? $0 < place : place < $0 } != false
  }
}
