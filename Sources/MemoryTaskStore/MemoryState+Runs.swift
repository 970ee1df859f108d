import TaskCore
import TaskStore

extension MemoryState {
  mutating func register(_ registration: WorkerRegistration) -> WorkerID {
    if let known = workers.first(where: { $0.value.registration.boot == registration.boot }) { return known.key }
    declareKinds(registration)
    lastWorker += 1
    let id = WorkerID(rawValue: lastWorker)
    workers[id] = Worker(
      registration: registration, startedAt: now, leaseUntil: now.advanced(bySeconds: registration.leaseSeconds))
    return id
  }

  private mutating func declareKinds(_ registration: WorkerRegistration) {
    for (former, kind) in registration.formerNames.map({ ($0.rawValue, $1.rawValue) }).sorted(by: <) {
      presentNames[kind] = nil
      for (name, present) in presentNames where present == former { presentNames[name] = kind }
      presentNames[former] = kind
      // What an operator has set for a former name is the limit of the kind, unless that has one.
      let limit = limits.removeValue(forKey: Bucket(scope: .kind, name: former))
      let bucket = Bucket(scope: .kind, name: kind)
      limits[bucket] = limits[bucket] ?? limit
      declaredLimits[former] = nil
    }
    for kind in registration.kinds where presentNames[kind.rawValue] == nil {
      declaredLimits[kind.rawValue] = registration.kindLimits[kind]
    }
  }

  mutating func renew(_ id: WorkerID, samples: [ProgressSample]) -> Renewal {
    guard let worker = workers[id], !worker.isDead else { return Renewal(isAlive: false) }
    workers[id]?.leaseUntil = now.advanced(bySeconds: worker.registration.leaseSeconds)
    for sample in samples {
      guard let task = tasks[sample.taskID], task.isOwned(by: sample.epoch) else { continue }
      tasks[sample.taskID]?.run?.bytesDone = sample.bytesDone
      tasks[sample.taskID]?.run?.bytesTotal = sample.bytesTotal
      tasks[sample.taskID]?.run?.rate = sample.rate
    }
    var intents: [UniqueID: Intent] = [:]
    for (task, value) in tasks where value.run?.worker == id { intents[task] = value.machine.intent }
    return Renewal(isAlive: true, intents: intents, isDraining: worker.isDraining)
  }

  mutating func retire(_ id: WorkerID) {
    workers[id]?.isDead = true
    if leader?.worker == id { leader = nil }
    dropDeadWorkers()
  }

  mutating func checkpoint(_ write: CheckpointWrite) -> Bool {
    guard let task = tasks[write.taskID], task.isOwned(by: write.epoch) else { return false }
    tasks[write.taskID]?.checkpoint = write.checkpoint
    tasks[write.taskID]?.checkpointEpoch = write.epoch
    if write.checkpoint.stage == Checkpoint.publishing, task.machine.state == .running {
      // What is published is known to be there.
      tasks[write.taskID]?.run?.bytesDone = write.checkpoint.bytesDone
      tasks[write.taskID]?.run?.bytesTotal = write.checkpoint.bytesTotal ?? task.run?.bytesTotal
      _ = try? move(write.taskID, .publishing)
    }
    return true
  }

  mutating func settle(_ settlement: Settlement) -> Bool {
    guard let task = tasks[settlement.taskID], task.isOwned(by: settlement.epoch) else {
      return tasks[settlement.taskID]?.settledEpoch == settlement.epoch
    }
    tasks[settlement.taskID]?.settledEpoch = settlement.epoch
    tasks[settlement.taskID]?.losses = 0
    switch settlement.outcome {
    case .succeeded(let sha256, let bytes, let output):
      end(settlement.taskID, .succeeded, nil)
      tasks[settlement.taskID]?.output = output
      tasks[settlement.taskID]?.sha256 = sha256
      tasks[settlement.taskID]?.bytesDone = bytes
      tasks[settlement.taskID]?.bytesTotal = bytes
      tasks[settlement.taskID]?.checkpoint = nil
    case .failed(let failure, let retryIn): end(settlement.taskID, .failed(retryIn: retryIn), failure)
    case .progressed(let failure, let retryIn): end(settlement.taskID, .progressed(retryIn: retryIn), failure)
    case .released(let reason, let delay): end(settlement.taskID, .released(delay: delay), reason)
    }
    return true
  }

  /// Ends a run; a canceled task has no error.
  private mutating func end(_ id: UniqueID, _ event: TaskMachine.Event, _ failure: TaskFailure?) {
    _ = try? move(id, event)
    let isCanceled = tasks[id]?.machine.state == .canceled
    tasks[id]?.error = isCanceled ? nil : failure
  }

  mutating func sweep() -> SweepResult {
    var result = SweepResult(expired: 0, due: 0, workers: 0)
    for (id, worker) in workers where worker.leaseUntil < now { workers[id]?.isDead = true }
    let lost = tasks.filter { task in task.value.run.flatMap { workers[$0.worker]?.isDead } ?? false }
    for (id, task) in lost.sorted(by: { $0.key < $1.key }) {
      lose(id, task)
      result.expired += 1
    }
    dropDeadWorkers()

    var due: [(until: Timestamp, id: UniqueID)] = []
    for (id, task) in tasks {
      if case .delayed(let until) = task.place, until <= now { due.append((until, id)) }
    }
    for (_, id) in due.sorted(by: { ($0.until, $0.id) < ($1.until, $1.id) }) {
      append(id)
      result.due += 1
    }
    result.workers = workers.values.count { !$0.isDead }
    return result
  }

  /// A run ended with its worker. The same rules stand in `end_runs`.
  private mutating func lose(_ id: UniqueID, _ task: MemoryTask) {
    let losses = task.checkpointEpoch != task.machine.epoch ? task.losses + 1 : 0
    let most = RetryPolicy.mostLosses(of: task.spec.kind)
    if losses >= most, task.machine.intent == nil {
      let message = "\(most) workers in a row ended, or lost contact, before the run recorded a checkpoint"
      end(id, .failed(retryIn: nil), TaskFailure(code: .lostRepeatedly, message: message, class: .fail))
    } else if losses > most - 4 {
      let byte = UInt8(truncatingIfNeeded: id.low >> (8 * (4 + min(losses - most, 0))))
      let message = "its worker ended, or lost contact, before the run recorded a checkpoint"
      let waits = byte > 0 && task.machine.intent == nil
      end(
        id, .released(delay: .milliseconds(125) * Int(byte)),
        waits ? TaskFailure(code: .workerLost, message: message, class: .wait) : nil)
    } else {
      end(id, .leaseExpired, nil)
    }
    let isKept = [.queued, .paused].contains(tasks[id]?.machine.state)
    tasks[id]?.losses = isKept ? losses : 0
  }

  private mutating func dropDeadWorkers() {
    let busy = Set(tasks.values.compactMap { $0.run?.worker })
    workers = workers.filter { !$0.value.isDead || busy.contains($0.key) }
  }
}
