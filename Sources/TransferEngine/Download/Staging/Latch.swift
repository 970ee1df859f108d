/// Lets the functions of one loop wait while something goes on, such as a sync. It is closed during that time.
// @unchecked: used only on that loop.
final class Latch: @unchecked Sendable {
  private(set) var isClosed: Bool
  private var waiting: [@Sendable () -> Void] = []

  init(isClosed: Bool = false) {
    self.isClosed = isClosed
  }

  func close() {
    isClosed = true
  }

  /// Lets all waiting callers pass, in the order in which they came.
  func open() {
    isClosed = false
    let waiting = self.waiting
    self.waiting = []
    for pass in waiting { pass() }
  }

  /// Calls `pass` when the latch is open: at once if it is open now.
  func whenOpen(_ pass: @escaping @Sendable () -> Void) {
    if isClosed { waiting.append(pass) } else { pass() }
  }

  /// Returns when the latch is open.
  func opened() async {
    // The state is read inside the closure, because the loop may run other work before it.
    await withUnsafeContinuation { continuation in whenOpen { continuation.resume() } }
  }
}
