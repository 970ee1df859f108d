/// A few threads for calls that block: fsync, hashing, name resolution. These calls must never run on the cooperative
/// pool or on a loop.
package final class BlockingPool: Sendable {
  private struct Queue {
    var work: [@Sendable () -> Void] = []
    var isClosed = false
  }

  private let condition = Condition(Queue())
  private let threads: [Thread]

  package init(name: String, threads count: Int) {
    let condition = self.condition
    threads = (0..<count).map { index in
      Thread(name: "\(name)-\(index)") { Self.serve(condition) }
    }
  }

  /// Runs `body` on one of the threads. Calls start in order. Throws the error of `body`.
  package func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Result, any Error>) in
      let isAccepted = submit { continuation.resume(with: Swift.Result { try body() }) }
      if !isAccepted { continuation.resume(throwing: CancellationError()) }
    }
  }

  /// Like ``run(_:)``, for a call that may never return. A canceled caller gets `CancellationError` at once, while the
  /// call goes on.
  package func runAbandonably<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    let caller = Lock<CheckedContinuation<Result, any Error>?>(nil)
    let answer: @Sendable (Swift.Result<Result, any Error>) -> Void = { result in
      caller.withLock { $0.take() }?.resume(with: result)
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        caller.withLock { $0 = continuation }
        // The task was canceled before there was an answer to give, so the cancellation handler did nothing.
        guard !Task.isCancelled else { return answer(.failure(CancellationError())) }
        let isAccepted = submit { answer(Swift.Result { try body() }) }
        if !isAccepted { answer(.failure(CancellationError())) }
      }
    } onCancel: {
      answer(.failure(CancellationError()))
    }
  }

  /// Finishes the accepted work and ends the threads. Later calls throw `CancellationError`. Blocks.
  package func shutdown() {
    close()
    for thread in threads { thread.join() }
  }

  /// Like ``shutdown()``, but does not wait for the threads: for calls that may never return.
  package func abandon() {
    close()
    for thread in threads { thread.detach() }
  }

  /// Runs `work` on one of the threads and reports no end; false if the pool is shut down.
  @discardableResult
  package func submit(_ work: @escaping @Sendable () -> Void) -> Bool {
    let isAccepted = condition.withLock { queue in
      guard !queue.isClosed else { return false }
      queue.work.append(work)
      return true
    }
    if isAccepted { condition.signal() }
    return isAccepted
  }

  private func close() {
    condition.withLock { $0.isClosed = true }
    condition.broadcast()
  }

  private static func serve(_ condition: Condition<Queue>) {
    while true {
      let work: (@Sendable () -> Void)? = condition.wait(
        until: { !$0.work.isEmpty || $0.isClosed },
        then: { $0.work.isEmpty ? nil : $0.work.removeFirst() })
      guard let work else { return }
      work()
    }
  }
}
