import MemoryTaskStore
import TaskCore
import TaskStore
import Testing
import WorkerCore

extension SimulatedWorker {
  // MARK: Claiming

  func pumpClaims() {
    guard let id = lease.worker, !isClaiming, !isDraining else { return }
    let free = Self.concurrency - runs.count
    switch claims.next(free: free, now: now) {
    case .wait(let until?):
      wake(at: until) { $0.pumpClaims() }
    case .wait(nil): break
    case .claim(let limit):
      isClaiming = true
      claim(id, limit, free: free)
    }
  }

  private func claim(_ id: WorkerID, _ limit: Int, free: Int) {
    call(
      { [fleet, planner = claims, now] store in
        var answer = try await store.claim(id, limit: limit, free: free, by: planner, now: now)
        // A repeated answer has no order of its own.
        answer.claims.sort { $0.spec.id < $1.spec.id }
        fleet.claimed(answer.claims, by: id)
        return answer
      },
      then: { worker, answer in
        worker.isClaiming = false
        guard let (taken, leavesTasks, areReady) = answer else {
          worker.claims.failed(now: worker.now)
          return worker.pumpClaims()
        }
        worker.claims.claimed(
          taken.count, of: limit, leavesTasks: leavesTasks, areReady: areReady, now: worker.now)
        if worker.lease.worker == id { for claim in taken { try await worker.begin(claim, id) } }
        worker.pumpClaims()
      })
  }
}
