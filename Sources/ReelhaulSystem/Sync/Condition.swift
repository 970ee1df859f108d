import Glibc

/// A value behind a mutex that threads can wait on.
// @unchecked: the value is touched only under the mutex.
package final class Condition<Value>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var value: Value

  package init(_ value: sending Value) {
    self.value = value
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(changed, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(mutex)
    changed.deallocate()
    mutex.deallocate()
  }

  package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&value)
  }

  /// Blocks the thread until `ready` holds, then runs `body` under the same lock.
  package func wait<Result>(until ready: (Value) -> Bool, then body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while !ready(value) { pthread_cond_wait(changed, mutex) }
    return body(&value)
  }

  /// Blocks the thread until `ready` holds, for at most `limit`. Returns whether it holds.
  package func wait(for limit: Duration, until ready: (Value) -> Bool) -> Bool {
    var end = timespec()
    clock_gettime(CLOCK_MONOTONIC, &end)
    let nanoseconds = Int64(end.tv_nsec) + limit.components.attoseconds / 1_000_000_000
    end.tv_sec += Int(limit.components.seconds + nanoseconds / 1_000_000_000)
    end.tv_nsec = Int(nanoseconds % 1_000_000_000)
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while !ready(value) {
      guard pthread_cond_timedwait(changed, mutex, &end) == 0 else { return ready(value) }
    }
    return true
  }

  package func signal() {
    pthread_cond_signal(changed)
  }

  package func broadcast() {
    pthread_cond_broadcast(changed)
  }
}
