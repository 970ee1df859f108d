import CommandLineKit
import Glibc
import ReelhaulSystem
import WorkerOptions

/// SIGINT, SIGTERM and, if asked for, SIGHUP as an event. The first signal requests an orderly stop, the second ends
/// the process at once.
final class StopSignal: Sendable {
  private struct State {
    var come: Int32?
    var handlers: [@Sendable () -> Void] = []
  }

  private let loop = EventLoop(name: "signals")
  private let state = Lock(State())
  private let signals = Lock<[LoopSignal]>([])

  /// `hangup`: whether the end of the terminal also requests a stop. It does not if `nohup` started the process.
  init(hangup: Bool = false) {
    let hangup = hangup && !LoopSignal.isIgnored(SIGHUP) ? [SIGHUP] : []
    loop.execute { [self] in
      let signals = ([SIGINT, SIGTERM] + hangup).map { signal in
        LoopSignal(loop: loop, signal: signal) { [self] in come(signal) }
      }
      self.signals.withLock { $0 = signals }
    }
  }

  /// Returns once the signals are caught.
  func listening() async {
    await withCheckedContinuation { continuation in loop.execute { continuation.resume() } }
  }

  var hasCome: Bool { state.withLock { $0.come != nil } }

  /// Calls `handler` when the signal comes, or at once if it has already come.
  func onStop(_ handler: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      if state.come == nil { state.handlers.append(handler) }
      return state.come != nil
    }
    if isLate { handler() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in onStop { continuation.resume() } }
  }

  /// Until it is closed, an interrupt ends this process, and tells before what goes on without it.
  @discardableResult
  static func telling(_ context: Context, _ sentence: @escaping @Sendable () -> String) async -> StopSignal {
    let stop = StopSignal()
    stop.onStop {
      if context.terminal.isInteractive { context.error.line() }
      context.note(sentence())
      stop.end()
    }
    await stop.listening()
    return stop
  }

  /// From here on the signals have their usual effect.
  func close() async {
    await withCheckedContinuation { continuation in
      loop.execute { [self] in
        signals.withLock { signals in
          for signal in signals { signal.close() }
          signals = []
        }
        continuation.resume()
      }
    }
  }

  /// Ends the process as the received signal would have, so that shells see that it was interrupted.
  func end() -> Never {
    ProgramEnd.raise(state.withLock { $0.come } ?? SIGINT)
  }

  private func come(_ signal: Int32) {
    let handlers: [@Sendable () -> Void]? = state.withLock { state in
      guard state.come == nil else { return nil }
      state.come = signal
      return state.handlers
    }
    guard let handlers else {
      // The terminal and the shell may each send a SIGHUP.
      guard signal != SIGHUP else { return }
      // The user insists. Children end with their parent.
      ProgramEnd.exit(128 + signal)
    }
    for handler in handlers { handler() }
  }
}
