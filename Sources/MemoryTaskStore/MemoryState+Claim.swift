import TaskCore
import TaskStore

extension MemoryState {
  /// What the queue is owed, and what it has had too much, are numbers of tasks, and stay.
  mutating func setWeight(_ name: String, _ weight: Double) {
    var queue = queues[name] ?? Queue()
    let ratio = queue.weight / weight
    queue.tag = queue.isIdle ? queue.tag * ratio : virtualTime + (queue.tag - virtualTime) * ratio
    queue.weight = weight
    queues[name] = queue
  }

  func demand(on worker: WorkerID) -> Demand? {
    let asking = workers[worker]?.registration
    let used = used
    let ready = tasks.values.count { task in
      guard let asking, task.isReady, asking.kinds.contains(task.spec.kind) else { return false }
      return Set(asking.volumes.keys).isSuperset(of: task.storages) && hasRoom(for: task, used)
    }
    guard ready > 0 else { return nil }
    let able = workers.values.count { other in
      guard let asking, !other.isDead, !other.isDraining, other.leaseUntil > now else { return false }
      return Set(other.registration.kinds).isSuperset(of: asking.kinds)
        && Set(other.registration.volumes.keys).isSuperset(of: asking.volumes.keys)
    }
    return Demand(
      ready: min(ready, Demand.most), running: tasks.values.count { $0.run != nil }, workers: able)
  }

  mutating func claim(_ worker: WorkerID, limit: Int, call: Int64) -> [Claim] {
    guard let owner = workers[worker], !owner.isDead, owner.leaseUntil > now else { return [] }
    guard call > owner.claimCall else {
      return tasks.values.filter { $0.run?.worker == worker && $0.run?.claimCall == call }.map(claim(of:))
    }
    workers[worker]?.claimCall = call
    let kinds = Set(owner.registration.kinds)
    let storages = Set(owner.registration.volumes.keys)

    var used = used
    // The waiting tasks that this worker can run, by priority and queue, in the order of their positions.
    var waiting: [Int: [String: [(position: Int, id: UniqueID)]]] = [:]
    for (id, task) in tasks {
      guard case .ready(let position) = task.place else { continue }
      guard kinds.contains(task.spec.kind), storages.isSuperset(of: task.storages) else { continue }
      waiting[task.spec.priority, default: [:]][task.spec.queue, default: []].append((position, id))
    }

    var claims: [Claim] = []
    for priority in waiting.keys.sorted(by: >) {
      var lines = (waiting[priority] ?? [:]).mapValues { $0.sorted { $0.position < $1.position }[...] }
      while claims.count < limit {
        var next: [String: Int] = [:]
        for (name, line) in lines {
          next[name] = line.firstIndex { tasks[$0.id].map { hasRoom(for: $0, used) } ?? false }
        }
        guard let name = serve(next.keys.sorted()), let index = next[name], let id = lines[name]?.remove(at: index).id
        else { break }
        for bucket in tasks[id].map(buckets) ?? [] { used[bucket, default: 0] += 1 }
        tasks[id]?.run = MemoryTask.Run(worker: worker, claimCall: call, startedAt: now)
        _ = try? move(id, .claimed)
        if let task = tasks[id] { claims.append(claim(of: task)) }
      }
    }

    let backlogged = Set(tasks.values.filter(\.isReady).map(\.spec.queue))
    for (name, queue) in queues where !queue.isIdle && !backlogged.contains(name) {
      queues[name]?.isIdle = true
      queues[name]?.tag = max(-1 / queue.weight, min(1 / queue.weight, queue.tag - virtualTime))
    }
    return claims
  }

  /// Lets the queue start a task that is owed most among the `due` queues. Each due queue earns its share of the start,
  /// by weight, and the queue that starts the task pays for it. Returns nil if no queue is due.
  private mutating func serve(_ due: [String]) -> String? {
    guard !due.isEmpty else { return nil }
    let former = virtualTime
    let parts = due.map { name in
      let queue = queues[name] ?? Queue()
      return (start: queue.isIdle ? former + queue.tag : queue.tag, weight: queue.weight, servedAt: queue.servedAt)
    }
    let total = parts.reduce(0) { $0 + $1.weight }
    let lowest = parts.map { $0.start - 1 / $0.weight }.min() ?? former
    virtualTime = max(former, lowest) + 1 / total

    func isBefore(_ one: Int, _ other: Int) -> Bool {
      func owed(_ index: Int) -> Double { (virtualTime - parts[index].start) * parts[index].weight }
      return (-owed(one), parts[one].servedAt, due[one]) < (-owed(other), parts[other].servedAt, due[other])
    }
    let chosen = due.indices.min(by: isBefore) ?? 0

    // The tags of queues that wait but are not due advance like the virtual time, so that they neither gain nor lose.
    for (name, queue) in queues where !queue.isIdle && !due.contains(name) {
      queues[name]?.tag = queue.tag + virtualTime - former
    }
    for (index, name) in due.enumerated() {
      queues[name, default: Queue()].isIdle = false
      queues[name]?.tag = parts[index].start
    }
    queues[due[chosen]]?.tag += 1 / parts[chosen].weight
    queues[due[chosen]]?.servedAt = virtualTime
    return due[chosen]
  }

  private func claim(of task: MemoryTask) -> Claim {
    Claim(
      spec: task.spec, epoch: task.machine.epoch, attempt: task.machine.attempt, checkpoint: task.checkpoint,
      beginsAnew: task.checkpoint == nil && task.generation != nil)
  }

  /// How many tasks run, by bucket.
  private var used: [Bucket: Int] {
    var used: [Bucket: Int] = [:]
    for task in tasks.values where task.run != nil {
      for bucket in buckets(of: task) { used[bucket, default: 0] += 1 }
    }
    return used
  }

  private func hasRoom(for task: MemoryTask, _ used: [Bucket: Int]) -> Bool {
    buckets(of: task).allSatisfy { bucket in
      used[bucket, default: 0] < limit(of: bucket) ?? .max
    }
  }
}
