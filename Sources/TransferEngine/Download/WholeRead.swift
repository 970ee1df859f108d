import System
import TaskCore

/// A read of a whole file, for its digests: it may take minutes, in which it shows how far it is and can be given up.
struct WholeRead: Sendable {
  private let ledger: any DownloadLedger
  private let stopped = Lock(false)

  init(_ ledger: any DownloadLedger) {
    self.ledger = ledger
  }

  func stop() {
    stopped.withLock { $0 = true }
  }

  /// Whether the task is still this run's, and nobody told it to stop.
  var isWanted: Bool { ledger.mayWrite && !stopped.withLock { $0 } }

  /// The digests of a file of `size` bytes. ECANCELED where nobody wants them any more. Blocks.
  func digests(
    of file: borrowing FileDescriptor, size: Int64, withMD5: Bool = false
  ) throws(SystemError) -> FileDigests {
    try FileDigests(of: file, withMD5: withMD5) { offset in
      ledger.progress(bytesDone: min(offset, size), bytesTotal: size)
      return isWanted
    }
  }
}
