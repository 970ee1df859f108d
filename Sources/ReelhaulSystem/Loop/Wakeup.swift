/// Lets one service of the control loop sleep until it is called or its time has come.
///
/// A call while the service does not sleep is kept, so none is lost. Several such calls count as one.
package actor Wakeup {
  private let loop: EventLoop
  private var isCalled = false
  private var sleeper: CheckedContinuation<Void, Never>?
  private var timer: LoopTimer?

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(loop: EventLoop) {
    self.loop = loop
  }

  package func call() {
    if sleeper == nil { isCalled = true } else { wake() }
  }

  /// Returns when called, at `deadline`, or as soon as the task is canceled. Only one task may sleep at a time.
  package func sleep(until deadline: BootInstant?) async {
    defer { isCalled = false }
    guard !isCalled, !Task.isCancelled else { return }
    let left = deadline.map { BootInstant.now.duration(to: $0) }
    if let left, left <= .zero { return }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // Called or canceled between the check and here, when there was no sleeper to wake.
        guard !isCalled, !Task.isCancelled else { return continuation.resume() }
        sleeper = continuation
        guard let left else { return }
        timer = loop.timer(after: left) { [self] in assumeIsolated { $0.wake() } }
      }
    } onCancel: {
      loop.execute { [self] in assumeIsolated { $0.wake() } }
    }
  }

  private func wake() {
    timer?.cancel()
    timer = nil
    let waiting = sleeper
    sleeper = nil
    waiting?.resume()
  }
}

extension EventLoop {
  /// How another task ends; nil if it has not ended by `deadline`, or once the caller is canceled. The other one goes on.
  package func result<Success: Sendable>(
    of task: Task<Success, any Error>, by deadline: BootInstant?
  ) async -> Result<Success, any Error>? {
    let end = Wakeup(loop: self)
    let result = Lock<Result<Success, any Error>?>(nil)
    self.task {
      let its = await task.result
      result.withLock { $0 = its }
      await end.call()
    }
    await end.sleep(until: deadline)
    return result.withLock { $0 }
  }
}
