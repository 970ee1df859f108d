import TaskCore
import TaskStore

extension MemoryStore {
  package func gauges() async throws -> FleetGauges {
    transaction { $0.gauges() }
  }
}

extension MemoryState {
  fileprivate func gauges() -> FleetGauges {
    var gauges = FleetGauges()
    var used: [Bucket: Int] = [:]
    for task in tasks.values where task.run != nil {
      for bucket in buckets(of: task) { used[bucket, default: 0] += 1 }
    }
    let live = workers.values.filter { !$0.isDead && $0.leaseUntil > now }.map(\.registration)
    for task in tasks.values.sorted(by: { ($0.createdAt, $0.spec.id) < ($1.createdAt, $1.spec.id) })
    where task.machine.state != .succeeded {
      let key = FleetGauges.Key(queue: task.spec.queue, kind: task.spec.kind)
      gauges.tasks[task.machine.state, default: [:]][key, default: 0] += 1
      switch (task.machine.state, task.place) {
      case (.paused, _): gauges.held[.pause, default: 0] += 1
      case (.blocked, _): gauges.held[.dependency, default: 0] += 1
      case (_, .delayed?): gauges.held[.schedule, default: 0] += 1
      case (_, .ready?):
        gauges.runnable[key, default: 0] += 0
        let buckets = buckets(of: task)
        if !live.contains(where: {
          $0.kinds.contains(task.spec.kind) && Set($0.volumes.keys).isSuperset(of: task.storages)
        }) {
          gauges.held[.worker, default: 0] += 1
        } else if buckets.contains(where: { bucket in limit(of: bucket).map { used[bucket, default: 0] >= $0 } ?? false
        }) {
          gauges.held[.cap, default: 0] += 1
        } else {
          for bucket in buckets { used[bucket, default: 0] += 1 }
          gauges.runnable[key, default: 0] += 1
          let since = [task.createdAt, task.spec.notBefore, task.startedAt].compactMap(\.self).max() ?? now
          gauges.oldestRunnable[key.queue] = max(
            gauges.oldestRunnable[key.queue] ?? .zero, .microseconds(max(0, now.microseconds - since.microseconds)))
        }
      default: break
      }
    }
    gauges.events = outbox.reduce(0) { $0 + $1.events.count }
    if let first = outbox.first { gauges.eventAge = .microseconds(now.microseconds - first.at.microseconds) }
    gauges.add(waitingHooks())
    return gauges
  }
}
