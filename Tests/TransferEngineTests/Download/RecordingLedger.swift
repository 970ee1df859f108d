import ReelhaulSystem
import TaskCore
import TransferEngine

/// Keeps the checkpoints and the progress of a download; `onCheckpoint` may refuse a checkpoint.
final class RecordingLedger: DownloadLedger {
  struct Refused: Error {}

  private struct State {
    var checkpoints: [DownloadCheckpoint] = []
    var progress: [Int64] = []
    var mayWrite = true
  }

  private static let owners = Lock(0)

  /// Every ledger belongs to a later owner.
  let epoch = owners.withLock { count in
    count += 1
    return count
  }
  private let state = Lock(State())
  private let onCheckpoint: @Sendable (DownloadCheckpoint) async throws -> Void

  init(_ onCheckpoint: @escaping @Sendable (DownloadCheckpoint) async throws -> Void = { _ in }) {
    self.onCheckpoint = onCheckpoint
  }

  func checkpoint(_ checkpoint: DownloadCheckpoint, patience: Duration) async throws {
    try await onCheckpoint(checkpoint)
    state.withLock { $0.checkpoints.append(checkpoint) }
  }

  func progress(bytesDone: Int64, bytesTotal: Int64?) {
    state.withLock { $0.progress.append(bytesDone) }
  }

  func pulse() {}

  var mayWrite: Bool { state.withLock { $0.mayWrite } }

  /// From now on the task has another owner.
  func revoke() {
    state.withLock { $0.mayWrite = false }
  }

  var checkpoints: [DownloadCheckpoint] { state.withLock { $0.checkpoints } }
  var last: DownloadCheckpoint? { checkpoints.last }
  var progress: [Int64] { state.withLock { $0.progress } }
}
