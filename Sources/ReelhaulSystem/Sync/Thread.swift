import CReelhaulSystem
import Glibc

/// A named POSIX thread. Signals of the process are not delivered to it.
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

  package init(name: String, _ body: @escaping @Sendable () -> Void) {
    var id = pthread_t()
    let start = Unmanaged.passRetained(Start(name: name, body: body)).toOpaque()
    let code = pthread_create(
      &id, nil,
      { context in
        let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
        rh_name_thread(String(start.name.prefix(15)))
        start.body()
        return nil
      }, start)
    precondition(code == 0, "pthread_create: \(code)")
    self.id = id
  }

  /// Waits for the thread's end. Exactly once, from another thread.
  package func join() {
    pthread_join(id, nil)
  }

  /// Lets it end unobserved, instead of ``join()``.
  package func detach() {
    pthread_detach(id)
  }
}
