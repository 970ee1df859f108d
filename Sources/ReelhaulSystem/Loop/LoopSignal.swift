import CReelhaulUV
import Glibc

/// Handles a POSIX signal on a loop instead of its default effect, until it is closed.
// @unchecked: touched only on the loop's thread, which every call checks.
package final class LoopSignal: @unchecked Sendable {
  private let loop: EventLoop
  private let handle = LoopHandle<uv_signal_t>()
  private let handler: @Sendable () -> Void

  /// Call it on the loop.
  package init(loop: EventLoop, signal: Int32, _ handler: @escaping @Sendable () -> Void) {
    self.loop = loop
    self.handler = handler
    uv_signal_init(loop.raw, handle.open(context: self))
    uv_signal_start(
      handle.pointer, { handle, _ in LoopHandle.from(handle).owner(as: LoopSignal.self)?.handler() }, signal)
  }

  /// Whether this process ignores the signal. Whoever started it may have said so.
  package static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    sigaction(signal, nil, &action)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  package func close() {
    loop.checkIsolated()
    handle.close()
  }
}
