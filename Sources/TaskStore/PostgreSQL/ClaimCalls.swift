/// Numbers a worker's claim calls, so that a call whose answer was lost is repeated under its number and answered with
/// the tasks it took, which otherwise nobody would run until the lease is over.
struct ClaimCalls {
  private var answered: [WorkerID: Int32] = [:]

  /// The number of the call to make now: the last one's as long as that was not answered.
  func next(for worker: WorkerID) -> Int32 {
    (answered[worker] ?? 0) &+ 1
  }

  mutating func answer(_ call: Int32, for worker: WorkerID) {
    answered[worker] = call
  }

  mutating func forget(_ worker: WorkerID) {
    answered[worker] = nil
  }
}
