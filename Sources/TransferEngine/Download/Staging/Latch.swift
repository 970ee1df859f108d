/// What the functions of one loop wait for: closed while something goes on, such as a sync.
// @unchecked: touched on that loop alone.
final class Latch: @unchecked Sendable {
  private(set) var isClosed: Bool
  private var waiting: [@Sendable () -> Void] = []

  init(isClosed: Bool = false) {
    self.isClosed = isClosed
  }

  func close() {
    isClosed = true
  }

  /// Lets all pass who wait, in the order of their coming.
  func open() {
    isClosed = false
    let waiting = self.waiting
    self.waiting = []
    for pass in waiting { pass() }
  }

  /// Calls `pass` once it is open: at once, where it is already.
  func whenOpen(_ pass: @escaping @Sendable () -> Void) {
    if isClosed { waiting.append(pass) } else { pass() }
  }

  /// Returns once it is open.
  func opened() async {
    // The loop may take a turn before the body runs, so that the state is asked in there.
    await withUnsafeContinuation { continuation in whenOpen { continuation.resume() } }
  }
}
