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

  /// Waits up to five seconds for a machine that gives no more threads. After that, the process ends.
  package convenience init(name: String, _ body: @escaping @Sendable () -> Void) {
    var id = Self.begin(name, body)
    for _ in 0..<500 where id == nil {
      usleep(10_000)
      id = Self.begin(name, body)
    }
    guard let id else { fatalError("the system gives no more threads: \(name) cannot begin") }
    self.init(id)
  }

  private init(_ id: pthread_t) {
    self.id = id
  }

  /// Returns nil if the system gives no more threads.
  package convenience init?(ifPossible name: String, _ body: @escaping @Sendable () -> Void) {
    guard let id = Self.begin(name, body) else { return nil }
    self.init(id)
  }

  private static func begin(_ name: String, _ body: @escaping @Sendable () -> Void) -> pthread_t? {
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
    return id
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
