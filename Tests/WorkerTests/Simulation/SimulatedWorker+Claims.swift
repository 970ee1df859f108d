import MemoryTaskStore
import TaskCore
import TaskStore
import Testing
import WorkerCore

extension SimulatedWorker {
  // MARK: Claiming

  func pumpClaims() {
    guard let id = lease.worker, !isClaiming, !isDraining else { return }
    switch claims.next(free: Self.concurrency - runs.count, now: now) {
    case .wait(let until?):
      wake(at: until) { $0.pumpClaims() }
    case .wait(nil): break
    case .claim(let limit):
      isClaiming = true
      claim(id, limit)
    }
  }

  private func claim(_ id: WorkerID, _ limit: Int) {
    call(
      { [fleet, planner = claims] store in
        // A repeated answer has no order of its own.
        let claims = try await store.claim(id, limit: limit, by: planner).sorted { $0.spec.id < $1.spec.id }
        fleet.claimed(claims, by: id)
        return claims
      },
      then: { worker, taken in
        worker.isClaiming = false
        guard let taken else {
          worker.claims.failed(now: worker.now)
          return worker.pumpClaims()
        }
        worker.claims.claimed(taken.count, of: limit, now: worker.now)
        if worker.lease.worker == id { for claim in taken { try await worker.begin(claim, id) } }
        worker.pumpClaims()
      })
  }
}
