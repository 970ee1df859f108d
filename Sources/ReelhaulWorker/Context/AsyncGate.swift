/// Runs the bodies of its callers one at a time, in the order of the calls.
actor AsyncGate {
  private var isBusy = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func run<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
    await withCheckedContinuation { turn in
      if isBusy { return waiting.append(turn) }
      isBusy = true
      turn.resume()
    }
    defer {
      if waiting.isEmpty { isBusy = false } else { waiting.removeFirst().resume() }
    }
    return try await body()
  }
}
