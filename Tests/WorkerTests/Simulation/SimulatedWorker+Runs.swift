import MemoryTaskStore
import TaskCore
import TaskStore
import TransferEngine
import WorkerCore

// A run: it fetches block by block, records only synced bytes, and publishes once.
extension SimulatedWorker {
  func begin(_ claim: Claim, _ id: WorkerID) async throws {
    runs[claim.spec.id] = Run(claim: claim, worker: id)
    guard let checkpoint = claim.checkpoint.flatMap({ try? DownloadCheckpoint($0) }) else { return step(claim) }
    if checkpoint.publishing != nil { return try await recover(claim, checkpoint) }
    adopt(checkpoint, claim.spec.id)
    step(claim)
  }

  func run(of claim: Claim) -> Run? {
    guard let run = runs[claim.spec.id], run.claim.epoch == claim.epoch else { return nil }
    return run
  }

  /// Continues with the recorded file if it exists; otherwise with a new one.
  private func adopt(_ checkpoint: DownloadCheckpoint, _ task: UniqueID) {
    runs[task]?.generation = checkpoint.generation + 1
    guard checkpoint.identity.isStrong, let file = disk.staged[checkpoint.stagingName] else { return }
    let recorded = SimulatedSources.blocks(checkpoint.done)
    simulation.check(recorded.isSubset(of: file.blocks.keys), "recorded blocks are gone", of: task)
    runs[task]?.generation = checkpoint.generation
    runs[task]?.identity = checkpoint.identity
    runs[task]?.file = StagingName(checkpoint.stagingName)
    runs[task]?.written = recorded
  }

  private var disk: SimulatedDisk { simulation.disk }

  /// Looks at the fence, then touches the world. The process may be frozen for long before it looks. It may also be frozen
  /// after it has looked: nothing can prevent that it then does what it was about to do, so that must do no harm.
  private func act(
    _ claim: Claim, _ body: @escaping @MainActor (SimulatedWorker) async throws -> Void
  ) async throws {
    freeze(0.004)
    try await thereupon { worker in
      guard worker.mayAct else { return }
      worker.simulation.note("epoch \(claim.epoch) acts", of: claim.spec.id)
      try await worker.fleet.acts(on: claim.spec.id, epoch: claim.epoch)
      worker.freeze(0.004)
      try await worker.thereupon(body)
    }
  }

  /// Handles one answer of the server, with the block in it.
  private func step(_ claim: Claim) {
    let task = claim.spec.id
    later(simulation.milliseconds(10...2000)) { worker in
      guard var run = worker.run(of: claim) else { return }
      guard run.stop == nil else { return worker.settle(claim, .stopped) }
      if worker.simulation.fault(0.02) { return worker.settle(claim, .failed(.busy)) }
      let seen = worker.simulation.sources.identity(of: task)
      var void: StagingName?
      if let known = run.identity, known.mismatch(with: seen) != nil {
        // While a sync runs, its bytes may still be recorded.
        if run.isSyncing { return worker.step(claim) }
        void = run.file
        run.generation += 1
        (run.identity, run.file, run.written) = (nil, nil, [])
      }
      let file = run.file ?? StagingName(task: task, epoch: claim.epoch, generation: run.generation)
      (run.identity, run.file) = (run.identity ?? seen, file)
      worker.runs[task] = run
      let version = worker.simulation.sources.version(of: task)
      let blocks = Set(0..<worker.simulation.sources.blocks(of: task))
      guard let block = blocks.subtracting(run.written).min() else { return worker.complete(claim) }
      try await worker.act(claim) { [void] worker in
        if let void { worker.disk.remove("\(void)") }
        if run.written.isEmpty { worker.disk.create("\(file)") }
        worker.disk.write(block, of: version, to: "\(file)")
        guard worker.run(of: claim)?.file == file else { return }
        worker.runs[task]?.written.insert(block)
        if worker.simulation.isLucky { worker.sync(claim) { _ in } }
        worker.step(claim)
      }
    }
  }

  /// Syncs the bytes that are written now, and records them when the sync has ended. More bytes are written meanwhile.
  private func sync(_ claim: Claim, then next: @escaping @MainActor (SimulatedWorker) -> Void) {
    guard let run = run(of: claim), let file = run.file, let identity = run.identity, !run.isSyncing else { return }
    runs[claim.spec.id]?.isSyncing = true
    let sync = disk.beginSync("\(file)")
    let (disk, duration) = (disk, simulation.milliseconds(1...1500))
    simulation.after(duration) { disk.end(sync) }
    later(duration) { worker in
      worker.record(
        claim, identity, run.generation, file, SimulatedSources.ranges(run.written), publishing: nil
      ) { worker in
        worker.runs[claim.spec.id]?.isSyncing = false
        next(worker)
      }
    }
  }

  private func record(
    _ claim: Claim, _ identity: SourceIdentity, _ generation: Int, _ file: StagingName, _ done: ByteRanges,
    publishing: DownloadCheckpoint.Publishing?, then next: @escaping @MainActor (SimulatedWorker) async throws -> Void
  ) {
    let checkpoint = DownloadCheckpoint(
      generation: generation, identity: identity, volume: UniqueID(high: 1, low: 1), stagingName: "\(file)",
      done: done, publishing: publishing)
    let write = CheckpointWrite(taskID: claim.spec.id, epoch: claim.epoch, checkpoint: checkpoint.envelope)
    self.write(
      claim,
      { [fleet] _ in try await fleet.checkpoint(write) },
      then: { worker, isOwner in
        if isOwner { try await next(worker) } else { worker.runs[claim.spec.id] = nil }
      })
  }

  // MARK: Publishing

  /// All blocks are written: syncs, records `publishing`, and renames.
  private func complete(_ claim: Claim) {
    guard let run = run(of: claim), let file = run.file, let identity = run.identity else { return }
    if run.isSyncing { return later(.milliseconds(5)) { $0.complete(claim) } }
    sync(claim) { worker in
      let all = SimulatedSources.ranges(0..<worker.simulation.sources.blocks(of: claim.spec.id))
      worker.record(
        claim, identity, run.generation, file, all, publishing: DownloadCheckpoint.Publishing(sha256: [])
      ) { try await $0.publish(claim, file) }
    }
  }

  private func publish(_ claim: Claim, _ file: StagingName) async throws {
    let task = claim.spec.id
    try await act(claim) { worker in
      switch worker.disk.rename("\(file)", to: task) {
      case .done:
        worker.fleet.published(task)
        worker.syncDirectory(claim)
      case .exists:
        let mark = worker.disk.published[task]?.mark
        worker.simulation.check(mark == "\(file)", "another file lies at the destination", of: task)
        worker.syncDirectory(claim)
      case .missing: worker.settle(claim, .failed(.busy))
      }
    }
  }

  private func syncDirectory(_ claim: Claim) {
    let (disk, duration, cuts) = (disk, simulation.milliseconds(1...500), disk.cuts)
    simulation.after(duration) { if disk.cuts == cuts { disk.syncDirectory(of: claim.spec.id) } }
    later(duration) { $0.settle(claim, .succeeded(sha256: nil, bytes: 1)) }
  }

  /// Finishes a publication that a former owner has recorded.
  private func recover(_ claim: Claim, _ checkpoint: DownloadCheckpoint) async throws {
    let task = claim.spec.id
    if disk.staged[checkpoint.stagingName] != nil, let file = StagingName(checkpoint.stagingName) {
      try await publish(claim, file)
    } else if disk.published[task]?.mark == checkpoint.stagingName {
      // The former owner may have died before it synced the directory.
      try await act(claim) { $0.syncDirectory(claim) }
    } else {
      runs[task]?.generation = checkpoint.generation + 1
      step(claim)
    }
  }

  // MARK: The end

  private func settle(_ claim: Claim, _ outcome: RunOutcome) {
    guard let run = run(of: claim) else { return }
    let decision = settlements.settlement(
      of: .init(
        attempt: claim.attempt, epoch: claim.epoch, retry: claim.spec.retry, outcome: outcome, stop: run.stop))
    guard let decision else { return }
    let settlement = Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: decision)
    write(
      claim, { [fleet] _ in try await fleet.settle(settlement) },
      then: { worker, _ in
        worker.runs[claim.spec.id] = nil
        worker.pumpClaims()
      })
  }

  /// Repeats a write until it is answered, while the fence is open.
  private func write(
    _ claim: Claim, _ request: @escaping @MainActor (MemoryStore) async throws -> [Bool],
    then done: @escaping @MainActor (SimulatedWorker, Bool) async throws -> Void
  ) {
    guard mayAct, run(of: claim) != nil else { return }
    call(
      freezing: 0.02, request,
      then: { worker, answers in
        guard worker.run(of: claim) != nil else { return }
        if let answer = answers?.first { return try await done(worker, answer) }
        worker.later(.milliseconds(50)) { $0.write(claim, request, then: done) }
      })
  }
}

extension TaskFailure {
  fileprivate static let busy = TaskFailure(code: .http(503), message: "busy", class: .retry)
}
