import Glibc
import ReelhaulSystem

/// The right to run a fleet on a data directory. Only one process holds it at a time; it is released when the process
/// ends.
final class FleetLock: Sendable {
  private let descriptor: Int32

  init(_ layout: FleetLayout) throws {
    descriptor = open(layout.lock, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw SystemError.last("open \(layout.lock)") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let failure = SystemError.last("lock \(layout.lock)")
      close(descriptor)
      guard failure.errno == EWOULDBLOCK else { throw failure }
      throw LocalFleetError("another fleet already runs on \(layout.root): stop it first, or choose another --data-dir")
    }
  }

  deinit {
    close(descriptor)
  }
}
