import TaskCore

/// The steps from "all bytes are written" to "the file is at its destination", and what a crash between any two of them
/// leaves to do. Pure.
///
/// Bytes on stable storage → digests → `publishing` recorded → renamed → directory on stable storage. Whoever finds
/// `publishing` recorded and the staging file gone looks at the destination: the rename had happened.
struct PublishMachine: Hashable {
  enum Action: Hashable {
    /// Data to stable storage, and the digest of all bytes.
    case verify
    case record(Checkpoint.Publishing)
    /// Rename to the destination and sync its directory.
    case move
    /// Compare the destination's size and digest.
    case inspectDestination
    case succeed(sha256: [UInt8]?)
    case digestMismatch
    /// Nothing of the recorded file is left: fetch it anew.
    case restart
    case fail(TaskFailure)
  }

  enum Event: Hashable {
    case verified(sha256: [UInt8]?, md5: [UInt8]?)
    case recorded
    case moved
    /// The destination exists by now, and is to be left as it is.
    case skipped
    /// Whether the destination has the recorded file's size and digest.
    case inspected(isRecordedFile: Bool)
    case failed(TaskFailure)
  }

  let expect: Expectation
  private var sha256: [UInt8]?

  /// All bytes have been fetched.
  init(expect: Expectation) {
    self.expect = expect
  }

  func begin() -> Action { .verify }

  /// Goes on after a crash: `publishing` was recorded.
  mutating func begin(recovering publishing: Checkpoint.Publishing, hasStaging: Bool) -> Action {
    sha256 = publishing.sha256
    return hasStaging ? .move : .inspectDestination
  }

  mutating func handle(_ event: Event) -> Action {
    switch event {
    case .verified(let sha256, let md5):
      guard expect.sha256 == nil || expect.sha256 == sha256, expect.md5 == nil || expect.md5 == md5 else {
        return .digestMismatch
      }
      self.sha256 = sha256
      return .record(Checkpoint.Publishing(sha256: sha256 ?? []))
    case .recorded: return .move
    case .skipped: return .succeed(sha256: nil)
    case .moved: return .succeed(sha256: known)
    case .inspected(let isRecordedFile): return isRecordedFile ? .succeed(sha256: known) : .restart
    case .failed(let failure): return .fail(failure)
    }
  }

  private var known: [UInt8]? { sha256?.isEmpty == true ? nil : sha256 }
}
