import TaskCore

extension MemoryState {
  mutating func register(_ registration: WorkerRegistration) -> WorkerID {
    if let known = workers.first(where: { $0.value.registration.boot == registration.boot }) { return known.key }
    lastWorker += 1
    let id = WorkerID(rawValue: lastWorker)
    workers[id] = Worker(
      registration: registration, startedAt: now, leaseUntil: now.advanced(bySeconds: registration.leaseSeconds))
    return id
  }

  mutating func renew(_ id: WorkerID, samples: [ProgressSample]) -> Renewal {
    guard let worker = workers[id], !worker.isDead else { return Renewal(isAlive: false) }
    workers[id]?.leaseUntil = now.advanced(bySeconds: worker.registration.leaseSeconds)
    for sample in samples {
      guard var run = tasks[sample.taskID]?.run(epoch: sample.epoch) else { continue }
      run.bytesDone = sample.bytesDone
      run.bytesTotal = sample.bytesTotal
      run.rate = sample.rate
      tasks[sample.taskID]?.run = run
    }
    var intents: [UUID: Intent] = [:]
    for (task, run) in tasks.compactMapValues(\.run) where run.worker == id { intents[task] = run.intent }
    return Renewal(isAlive: true, intents: intents)
  }

  mutating func retire(_ id: WorkerID) {
    workers[id]?.isDead = true
    if leader?.worker == id { leader = nil }
    dropDeadWorkers()
  }

  mutating func checkpoint(_ write: CheckpointWrite) -> Bool {
    guard var run = tasks[write.taskID]?.run(epoch: write.epoch) else { return false }
    tasks[write.taskID]?.checkpoint = write.checkpoint
    if write.checkpoint.publishing != nil, !run.isPublishing {
      run.isPublishing = true
      tasks[write.taskID]?.run = run
      publish(.publishing, [write.taskID])
    }
    return true
  }

  mutating func settle(_ settlement: Settlement) -> Bool {
    guard let run = tasks[settlement.taskID]?.run(epoch: settlement.epoch) else {
      return tasks[settlement.taskID]?.settledEpoch == settlement.epoch
    }
    tasks[settlement.taskID]?.settledEpoch = settlement.epoch
    end(settlement.taskID, run, settlement.outcome)
    return true
  }

  mutating func sweep() -> SweepResult {
    var result = SweepResult(expired: 0, due: 0)
    for (id, worker) in workers where worker.leaseUntil < now { workers[id]?.isDead = true }
    let dead = Set(workers.filter(\.value.isDead).keys)
    let lost = tasks.values.filter { task in task.run.map { dead.contains($0.worker) } ?? false }
    for task in lost.sorted(by: { $0.spec.id < $1.spec.id }) {
      guard let run = task.run else { continue }
      end(task.spec.id, run, .released(reason: nil, delay: .zero))
      result.expired += 1
    }
    dropDeadWorkers()

    var due: [(until: Timestamp, id: UUID)] = []
    for (id, task) in tasks {
      if case .delayed(let until) = task.place, until <= now { due.append((until, id)) }
    }
    for (_, id) in due.sorted(by: { ($0.until, $0.id) < ($1.until, $1.id) }) {
      enqueue(id)
      result.due += 1
    }
    return result
  }

  private mutating func dropDeadWorkers() {
    let busy = Set(tasks.values.compactMap { $0.run?.worker })
    workers = workers.filter { !$0.value.isDead || busy.contains($0.key) }
  }

  /// Ends a run: a success is one; else an intent decides, else the outcome.
  private mutating func end(_ id: UUID, _ run: MemoryTask.Run, _ outcome: Settlement.Outcome) {
    guard var task = tasks[id] else { return }
    task.place = .resting
    task.epoch = run.epoch
    task.attempt = run.attempt
    task.startedAt = run.startedAt
    task.bytesDone = run.bytesDone ?? task.bytesDone
    task.bytesTotal = run.bytesTotal ?? task.bytesTotal
    task.generation = task.checkpoint?.generation ?? task.generation
    task.worker = workers[run.worker]?.registration.boot
    task.error = nil
    var delay = Duration.zero
    var event = TaskEvent.Kind.released

    switch outcome {
    case .succeeded(let sha256, let bytes):
      task.state = .succeeded
      task.sha256 = sha256
      task.bytesDone = bytes
      task.bytesTotal = bytes
      task.checkpoint = nil
      event = .succeeded
    case .failed(let failure, let retryIn):
      task.error = failure
      task.state = retryIn == nil ? .failed : .queued
      delay = retryIn ?? .zero
      event = retryIn == nil ? .failed : .retrying
    case .released(let reason, let wait):
      task.error = reason
      task.attempt = run.attempt - 1
      delay = wait
    }
    if event != .succeeded, run.intent == .cancel {
      task.state = .canceled
      task.error = nil
      event = .canceled
    } else if event != .succeeded, run.intent == .pause {
      task.state = .paused
      event = .paused
    }
    task.finishedAt = task.state.isFinal ? now : nil
    tasks[id] = task
    publish(event, [id])

    if task.state == .queued { enqueue(id, inFront: event == .released, notBefore: now.advanced(by: delay)) }
    if task.state == .succeeded { unblock(after: id) }
  }

  private mutating func unblock(after id: UUID) {
    for waiting in tasks.values.filter({ $0.waitsFor.contains(id) }).map(\.spec.id).sorted() {
      tasks[waiting]?.waitsFor.remove(id)
      guard let task = tasks[waiting], task.state == .blocked, task.waitsFor.isEmpty else { continue }
      release(waiting, event: .released)
    }
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

extension Duration {
  /// Whole microseconds.
  var microseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
}
