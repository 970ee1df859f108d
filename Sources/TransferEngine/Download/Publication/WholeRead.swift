import Glibc
import ReelhaulSystem
import TaskCore

/// Reads a whole file for its digests. This may take minutes: it reports its progress and can be stopped.
struct WholeRead: Sendable {
  private struct State {
    var isStopped = false
    var wasRefused = false
  }

  private let ledger: any TransferLedger
  private let isAllowed: Bool
  private let state = Lock(State())

  /// - Parameter isAllowed: If false, ``digests(of:size:withMD5:)`` fails at once and sets ``wasRefused``. A caller
  ///   that must be quick can so find out whether a whole read is needed.
  init(_ ledger: any TransferLedger, isAllowed: Bool = true) {
    self.ledger = ledger
    self.isAllowed = isAllowed
  }

  func stop() {
    state.withLock { $0.isStopped = true }
  }

  /// Whether the run still owns the task, and the read was not stopped.
  var isWanted: Bool { ledger.mayWrite && !state.withLock { $0.isStopped } }

  /// Whether a read was needed but not allowed.
  var wasRefused: Bool { state.withLock { $0.wasRefused } }

  /// The digests of a file of `size` bytes. Throws ECANCELED once ``isWanted`` is false. Blocks.
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
