import TaskCore

extension MemoryState {
  mutating func claim(_ worker: WorkerID, limit: Int, call: Int64) -> [Claim] {
    guard let owner = workers[worker], !owner.isDead, owner.leaseUntil > now else { return [] }
    guard call > owner.claimCall else {
      return tasks.values.filter { $0.run?.worker == worker && $0.run?.claimCall == call }.map(claim(of:))
    }
    workers[worker]?.claimCall = call
    let kinds = Set(owner.registration.kinds)
    let storages = Set(owner.registration.volumes.keys)

    var used: [Bucket: Int] = [:]
    for task in tasks.values where task.run != nil {
      for bucket in buckets(of: task.spec) { used[bucket, default: 0] += 1 }
    }

    // Waiting tasks of this worker by priority and queue, each queue's in the order of their positions.
    var waiting: [Int: [String: [(position: Int, id: UniqueID)]]] = [:]
    for (id, task) in tasks {
      guard case .ready(let position) = task.place else { continue }
      guard kinds.contains(task.spec.kind), storages.isSuperset(of: LaneKey(task.spec).storages) else { continue }
      waiting[task.spec.priority, default: [:]][task.spec.queue, default: []].append((position, id))
    }

    var claims: [Claim] = []
    let current = virtualTime
    for priority in waiting.keys.sorted(by: >) {
      var lines = (waiting[priority] ?? [:]).mapValues { $0.sorted { $0.position < $1.position }[...] }
      // Serve the queue with the lowest tag; one whose tasks are all over a limit is out of this claim.
      while claims.count < limit,
        let name = lines.keys.min(by: { (tag(of: $0, current), $0) < (tag(of: $1, current), $1) })
      {
        let line = lines[name] ?? []
        guard let next = line.firstIndex(where: { hasRoom(for: $0.id, used) }) else {
          lines[name] = nil
          continue
        }
        let id = line[next].id
        lines[name] = line[..<next] + line[(next + 1)...]
        for bucket in tasks[id].map({ buckets(of: $0.spec) }) ?? [] { used[bucket, default: 0] += 1 }
        var queue = queues[name] ?? Queue()
        let start = max(queue.tag, current)
        virtualTime = max(virtualTime, start)
        queue.tag = start + 1 / queue.weight
        queues[name] = queue
        tasks[id]?.run = MemoryTask.Run(worker: worker, claimCall: call, startedAt: now)
        _ = try? move(id, .claimed)
        if let task = tasks[id] { claims.append(claim(of: task)) }
      }
    }
    return claims
  }

  private func claim(of task: MemoryTask) -> Claim {
    Claim(spec: task.spec, epoch: task.machine.epoch, attempt: task.machine.attempt, checkpoint: task.checkpoint)
  }

  private func tag(of queue: String, _ current: Double) -> Double {
    max(queues[queue]?.tag ?? 0, current)
  }

  private func hasRoom(for id: UniqueID, _ used: [Bucket: Int]) -> Bool {
    guard let task = tasks[id] else { return false }
    return buckets(of: task.spec).allSatisfy { bucket in
      used[bucket, default: 0] < limit(of: bucket) ?? .max
    }
  }
}
