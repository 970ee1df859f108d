import CReelhaulSystem
import Glibc

/// A named POSIX thread.
package final class Thread: Sendable {
  private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  private let id: pthread_t

  package convenience init(name: String, _ body: @escaping @Sendable () -> Void) {
    self.init(ifPossible: name, body)!
  }

  /// Returns nil if the system gives no more threads.
  package init?(ifPossible name: String, _ body: @escaping @Sendable () -> Void) {
    var id = pthread_t()
    let start = Unmanaged.passRetained(Start(name: name, body: body))
    let code = pthread_create(
      &id, nil,
      { context in
        let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
        rh_name_thread(String(start.name.prefix(15)))
        start.body()
        return nil
      }, start.toOpaque())
    guard code == 0 else {
      start.release()
      return nil
    }
    self.id = id
  }

  /// Waits until the thread ends. Call it exactly once, from another thread.
  package func join() {
    pthread_join(id, nil)
  }

  /// Releases the thread without waiting for its end, instead of ``join()``.
  package func detach() {
    pthread_detach(id)
  }
}
