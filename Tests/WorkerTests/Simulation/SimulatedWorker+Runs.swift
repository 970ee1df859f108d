import TaskCore
import TaskStore
import Testing
import TransferEngine
import WorkerCore

extension SimulatedWorker {
  // MARK: Claiming

  func pumpClaims() {
    guard let id = lease.worker, !isClaiming, !isDraining else { return }
    switch claims.next(free: Self.concurrency - runs.count, now: simulation.now) {
    case .wait(let until?):
      later(max(.zero, simulation.now.duration(to: until))) { $0.pumpClaims() }
    case .wait(nil): break
    case .claim(let limit):
      isClaiming = true
      claim(id, limit)
    }
  }

  private func claim(_ id: WorkerID, _ limit: Int) {
    let number = claims.call
    call(
      { try await $0.claim(id, limit: limit, call: number) },
      then: { worker, taken in
        worker.isClaiming = false
        guard let taken else {
          worker.claims.failed(now: worker.simulation.now)
          return worker.pumpClaims()
        }
        worker.claims.claimed(taken.count, of: limit, now: worker.simulation.now)
        if worker.lease.worker == id { for claim in taken { worker.begin(claim, id) } }
        worker.pumpClaims()
      })
  }

  // MARK: Running

  private func begin(_ claim: Claim, _ id: WorkerID) {
    runs[claim.spec.id] = Run(
      claim: claim, worker: id, stepsLeft: Int.random(in: 1...6, using: &simulation.random),
      done: claim.checkpoint.flatMap { try? DownloadCheckpoint($0) }?.done ?? ByteRanges())
    step(claim)
  }

  private func run(of claim: Claim) -> Run? {
    guard let run = runs[claim.spec.id], run.claim.epoch == claim.epoch else { return nil }
    return run
  }

  /// One stretch of a transfer: some time passes, bytes are written behind the fence, and recorded.
  private func step(_ claim: Claim) {
    later(simulation.milliseconds(10...2000)) { worker in
      guard var run = worker.run(of: claim) else { return }
      guard run.stop == nil else { return worker.settle(claim, .stopped) }
      guard let fence = worker.fence, worker.simulation.now < fence else { return }
      try await worker.fleet.wrote(claim.spec.id, epoch: claim.epoch)
      let start = run.done.ranges.last?.upperBound ?? 0
      run.done.insert(start..<start + 1000)
      run.stepsLeft -= 1
      worker.runs[claim.spec.id] = run
      worker.record(claim)
    }
  }

  private func record(_ claim: Claim) {
    guard let run = run(of: claim) else { return }
    let checkpoint = DownloadCheckpoint(
      generation: 1, identity: SourceIdentity(finalURL: claim.spec.source, size: nil),
      volume: UniqueID(high: 1, low: 1),
      stagingName: "s", done: run.done)
    let write = CheckpointWrite(taskID: claim.spec.id, epoch: claim.epoch, checkpoint: checkpoint.envelope)
    self.write(
      claim, { try await $0.checkpoint([write]) },
      then: { worker, isOwner in
        guard isOwner else {
          worker.runs[claim.spec.id] = nil
          return
        }
        // An answer that a stopped process finds when it wakes tells of the past.
        if let fence = worker.fence, worker.simulation.now < fence {
          worker.fleet.recorded(claim.spec.id, run.done.count)
        }
        if run.stepsLeft > 0 { worker.step(claim) } else { worker.settle(claim, worker.ending()) }
      })
  }

  private func ending() -> RunOutcome {
    switch Int.random(in: 0..<10, using: &simulation.random) {
    case 0: .failed(TaskFailure(code: .http(503), message: "busy", class: .retry))
    case 1: .failed(TaskFailure(code: .diskFull, message: "full", class: .wait))
    default: .succeeded(sha256: nil, bytes: 1)
    }
  }

  private func settle(_ claim: Claim, _ outcome: RunOutcome) {
    guard let run = run(of: claim) else { return }
    let decision = settlements.settlement(
      of: .init(
        attempt: claim.attempt, epoch: claim.epoch, retry: claim.spec.retry, outcome: outcome, stop: run.stop))
    guard let decision else { return }
    let settlement = Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: decision)
    write(
      claim, { try await $0.settle([settlement]) },
      then: { worker, _ in
        worker.runs[claim.spec.id] = nil
        worker.pumpClaims()
      })
  }

  /// Writes until there is an answer, as long as the fence is open.
  private func write(
    _ claim: Claim, _ request: @escaping @MainActor (MemoryStore) async throws -> [Bool],
    then done: @escaping @MainActor (SimulatedWorker, Bool) -> Void
  ) {
    guard let fence, simulation.now < fence, run(of: claim) != nil else { return }
    call(request) { worker, answers in
      guard worker.run(of: claim) != nil else { return }
      if let answer = answers?.first { return done(worker, answer) }
      worker.later(.milliseconds(50)) { $0.write(claim, request, then: done) }
    }
  }
}
