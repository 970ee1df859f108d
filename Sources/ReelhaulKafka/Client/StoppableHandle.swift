import ReelhaulSystem

/// Tells a poll thread to stop, and never touches a client that has been freed.
final class StoppableHandle: Sendable {
  private let handle: KafkaHandle
  private let stopping = Lock(false)

  init(_ handle: KafkaHandle) {
    self.handle = handle
  }

  var isStopping: Bool { stopping.withLock { $0 } }

  /// Ends the thread's wait. Does nothing after ``stop()``, which has ended it already.
  func wake() {
    stopping.withLock { if !$0 { handle.wake() } }
  }

  /// The thread frees the client only after it has seen the flag. So the wake comes first, under the lock.
  func stop() {
    stopping.withLock { isStopping in
      guard !isStopping else { return }
      isStopping = true
      handle.wake()
    }
  }
}
