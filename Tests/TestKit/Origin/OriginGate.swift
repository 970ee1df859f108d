import Glibc
import ReelhaulSystem

/// A place in an answer where the server waits until the test opens the gate.
package final class OriginGate: Sendable {
  private struct State {
    /// The writing end of ``pipe``. Closing it opens the gate.
    var writer: Int32
    var wasReached = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Lock<State>
  /// The end of a pipe that reports a hang-up once the gate is open.
  private let pipe: Int32

  package init() {
    var ends: [Int32] = [-1, -1]
    Glibc.pipe(&ends)
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    pipe = ends[0]
    state = Lock(State(writer: ends[1]))
  }

  deinit {
    open()
    Glibc.close(pipe)
  }

  /// Returns once an answer has arrived at the gate for the first time.
  package func reached() async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        if !state.wasReached { state.waiting.append(continuation) }
        return state.wasReached
      }
      if isReached { continuation.resume() }
    }
  }

  /// Opens the gate for waiting answers and all later ones.
  package func open() {
    state.withLock { state in
      if state.writer >= 0 { Glibc.close(state.writer) }
      state.writer = -1
    }
  }

  /// Waits for the gate, or for the end of the connection `socket`. Returns whether the gate is open.
  func pass(_ socket: Int32) -> Bool {
    let waiting = state.withLock { state in
      state.wasReached = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
    var fds = [
      pollfd(fd: pipe, events: Int16(POLLIN), revents: 0),
      pollfd(fd: socket, events: OriginConnection.hangUp, revents: 0),
    ]
    while poll(&fds, 2, -1) < 0, errno == EINTR {}
    return fds[0].revents != 0
  }
}
