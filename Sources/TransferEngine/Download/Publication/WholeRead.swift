import Glibc
import ReelhaulSystem
import TaskCore

/// A read of a whole file, for its digests: it may take minutes, in which it shows how far it is and can be given up.
struct WholeRead: Sendable {
  private struct State {
    var isStopped = false
    var wasRefused = false
  }

  private let ledger: any TransferLedger
  private let isAllowed: Bool
  private let state = Lock(State())

  /// One that is not allowed is given up where it would begin: for a look that is to be short.
  init(_ ledger: any TransferLedger, isAllowed: Bool = true) {
    self.ledger = ledger
    self.isAllowed = isAllowed
  }

  func stop() {
    state.withLock { $0.isStopped = true }
  }

  /// Whether the task is still this run's, and nobody told it to stop.
  var isWanted: Bool { ledger.mayWrite && !state.withLock { $0.isStopped } }

  /// Whether it was to begin, and not allowed.
  var wasRefused: Bool { state.withLock { $0.wasRefused } }

  /// The digests of a file of `size` bytes. ECANCELED where nobody wants them any more. Blocks.
  func digests(
    of file: borrowing FileDescriptor, size: Int64, withMD5: Bool = false
  ) throws(SystemError) -> FileDigests {
    guard isAllowed else {
      state.withLock { $0.wasRefused = true }
      throw SystemError(errno: ECANCELED, operation: "read to the end")
    }
    return try FileDigests(of: file, withMD5: withMD5) { offset in
      ledger.progress(bytesDone: min(offset, size), bytesTotal: size)
      return isWanted
    }
  }
}
