import ReelhaulSystem

/// Tells a poll thread to stop, without ever touching a client that is gone.
final class StoppableHandle: Sendable {
  private let handle: KafkaHandle
  private let stopping = Lock(false)

  init(_ handle: KafkaHandle) {
    self.handle = handle
  }

  var isStopping: Bool { stopping.withLock { $0 } }

  /// Ends the thread's wait; to be told to stop has done so.
  func wake() {
    stopping.withLock { if !$0 { handle.wake() } }
  }

  /// The thread frees the client only after it has seen the flag, so the wake comes before that, under the lock.
  func stop() {
    stopping.withLock { isStopping in
      guard !isStopping else { return }
      isStopping = true
      handle.wake()
    }
  }
}
