/// A few threads for calls that block: fsync, hashing, name resolution. These calls must never run on the cooperative
/// pool or on a loop. The first thread is started at once, and another one when there is a call that none is free for.
package final class BlockingPool: Sendable {
  private struct Queue {
    var work: [@Sendable () -> Void] = []
    var threads: [Thread] = []
    /// The threads that wait for work, or that work was given to and that have not taken it yet.
    var idle = 0
    var isClosed = false
  }

  private let name: String
  private let limit: Int
  private let condition = Condition(Queue())

  /// - Parameter limit: The most threads, and so the most calls at the same time.
  package init(name: String, threads limit: Int) {
    self.name = name
    self.limit = limit
    condition.withLock { start(&$0) }
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
    try Task.checkCancellation()
    let answer = Awaited<Result>()
    guard submit({ answer.settle(Swift.Result { try body() }) }) else { throw CancellationError() }
    return try await answer.value
  }

  /// Like ``run(_:)``, for a call that may wait long for a thread. A caller that is canceled before gets
  /// `CancellationError` at once, and nothing is called.
  package func runUnlessCanceled<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    let waiting = Lock<CheckedContinuation<Result, any Error>?>(nil)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        waiting.withLock { $0 = continuation }
        let isAccepted = submit {
          waiting.withLock { $0.take() }?.resume(with: Swift.Result { try body() })
        }
        if !isAccepted || Task.isCancelled { waiting.withLock { $0.take() }?.resume(throwing: CancellationError()) }
      }
    } onCancel: {
      waiting.withLock { $0.take() }?.resume(throwing: CancellationError())
    }
  }

  /// Finishes the accepted work and ends the threads. Later calls throw `CancellationError`. Blocks.
  package func shutdown() {
    for thread in close() { thread.join() }
  }

  /// Like ``shutdown()``, but does not wait for the threads: for calls that may never return.
  package func abandon() {
    for thread in close() { thread.detach() }
  }

  /// Runs `work` on one of the threads and reports no end; false if the pool is shut down, or never got a thread.
  @discardableResult
  package func submit(_ work: @escaping @Sendable () -> Void) -> Bool {
    let isAccepted = condition.withLock { queue in
      guard !queue.isClosed else { return false }
      queue.work.append(work)
      if queue.idle < queue.work.count, queue.threads.count < limit { start(&queue) }
      guard queue.threads.isEmpty else { return true }
      queue.work.removeLast()
      return false
    }
    if isAccepted { condition.signal() }
    return isAccepted
  }

  private func close() -> [Thread] {
    let threads = condition.withLock { queue in
      queue.isClosed = true
      defer { queue.threads = [] }
      return queue.threads
    }
    condition.broadcast()
    return threads
  }

  private func start(_ queue: inout Queue) {
    let (name, condition) = ("\(name)-\(queue.threads.count)", condition)
    // If the system gives no more threads, work waits for one of those that there are.
    guard let thread = Thread(ifPossible: name, { Self.serve(condition) }) else { return }
    queue.threads.append(thread)
    queue.idle += 1
  }

  private static func serve(_ condition: Condition<Queue>) {
    while true {
      let work: (@Sendable () -> Void)? = condition.wait(
        until: { !$0.work.isEmpty || $0.isClosed },
        then: { queue in
          guard !queue.work.isEmpty else { return nil }
          queue.idle -= 1
          return queue.work.removeFirst()
        })
      guard let work else { return }
      work()
      condition.withLock { $0.idle += 1 }
    }
  }
}

/// A task with this preference runs on these threads between its suspensions: for work that would take a loop's time, and
/// must not wait for the global executor, which handlers may block.
extension BlockingPool: TaskExecutor {
  package func enqueue(_ job: consuming ExecutorJob) {
    let (job, executor) = (UnownedJob(job), asUnownedTaskExecutor())
    // A job must not be lost, because a caller waits for it.
    if !submit({ job.runSynchronously(on: executor) }) { job.runSynchronously(on: executor) }
  }
}
