import TaskCore

extension MemoryState {
  func document(_ id: UUID) -> TaskDocument? {
    tasks[id].map { $0.document(boot: boot(of: $0)) }
  }

  func documents(_ filter: TaskFilter) -> [TaskDocument] {
    tasks.values
      .filter { filter.state == nil || $0.effectiveState == filter.state }
      .filter { filter.queue == nil || $0.spec.queue == filter.queue }
      .sorted { ($0.createdAt, $0.spec.id) > ($1.createdAt, $1.spec.id) }
      .prefix(filter.limit)
      .map { $0.document(boot: boot(of: $0)) }
  }

  func pendingEvents(limit: Int) -> [OutboxBatch] {
    outbox.prefix(limit).map { row in
      OutboxBatch(
        row: row.id,
        events: row.events.map { event in
          TaskEvent(
            taskID: event.task, sequence: event.sequence, kind: row.kind, at: row.at, task: document(event.task))
        })
    }
  }

  func workerDocuments() -> [WorkerDocument] {
    workers.sorted { $0.key.rawValue < $1.key.rawValue }.map { id, worker in
      let runs = tasks.values.compactMap(\.run).filter { $0.worker == id }
      return WorkerDocument(
        id: worker.registration.boot, host: worker.registration.host, pid: worker.registration.pid,
        startedAt: worker.startedAt, leaseUntil: worker.leaseUntil, isLive: !worker.isDead && worker.leaseUntil > now,
        running: runs.count, volumes: worker.registration.volumes, labels: worker.registration.labels,
        bytesPerSecond: runs.reduce(0) { $0 + ($1.rate ?? 0) })
    }
  }

  func audit() -> [String] {
    var violations: [String] = []
    for (id, task) in tasks {
      switch task.place {
      case .resting where task.state == .queued: violations.append("task \(id) is queued and nowhere")
      case .ready where task.state != .queued, .delayed where task.state != .queued,
        .running where task.state != .queued:
        violations.append("task \(id) is \(task.state) and in \(task.place)")
      case .running(let run) where workers[run.worker] == nil:
        violations.append("task \(id) runs for a worker that does not exist")
      case .running(let run) where run.epoch != task.epoch + 1:
        violations.append("task \(id) runs with epoch \(run.epoch) after epoch \(task.epoch)")
      default: break
      }
      if (task.state == .blocked) && task.waitsFor.isEmpty { violations.append("task \(id) is blocked by nothing") }
      if task.state.isFinal != (task.finishedAt != nil) {
        violations.append("task \(id) is \(task.state) and has no end")
      }
    }
    return violations
  }
}
