import TaskCore

/// Runs downloads, many at a time.
package final class DownloadEngine: Sendable {
  private let roots: StorageRoots
  private let options: DownloadOptions

  package init(roots: StorageRoots, options: DownloadOptions = DownloadOptions()) {
    self.roots = roots
    self.options = options
  }

  /// Runs one attempt of `spec`, from what `checkpoint` recorded of earlier ones. Cancel the task to stop it: it then
  /// records what is written, while the ledger lets it, and returns ``DownloadOutcome/stopped``.
  package func run(
    _ spec: TaskSpec, from checkpoint: DownloadCheckpoint?, ledger: any DownloadLedger
  ) async -> DownloadOutcome {
    let destination: StorageURL
    do throws(InvalidStorageURL) {
      destination = try StorageURL(spec.destination ?? "")
    } catch {
      return .failed(TaskFailure(code: .destinationInvalid, message: "the destination: \(error)", class: .fail))
    }
    return await run(spec, to: destination, from: checkpoint, ledger: ledger)
  }

  /// The same to `destination`, whatever the task says.
  package func run(
    _ spec: TaskSpec, to destination: StorageURL, from checkpoint: DownloadCheckpoint?, ledger: any DownloadLedger
  ) async -> DownloadOutcome {
    guard let root = roots[destination.root] else {
      return .failed(StorageError.unknownRoot(destination.root).failure)
    }
    let context = DownloadContext(root: root, options: options)
    return await DownloadRun(
      spec: spec, destination: destination, checkpoint: checkpoint, ledger: ledger, context: context
    ).run()
  }
}

/// How a run of a download ended.
package enum DownloadOutcome: Hashable, Sendable {
  /// The file is at its destination. `sha256` is `nil` where nothing was hashed: the destination existed and was to be
  /// left as it is, or hashing is off.
  case succeeded(sha256: [UInt8]?, bytes: Int64)
  case failed(TaskFailure)
  /// Stopped as asked, or because the task has another owner. What is on disk is recorded as far as it could be.
  case stopped
}

/// What the downloads to one storage root share.
struct DownloadContext: Sendable {
  let root: StorageRoot
  let options: DownloadOptions
}
