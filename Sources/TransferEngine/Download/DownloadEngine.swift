import TaskCore

/// Runs downloads, many at a time.
package struct DownloadEngine: Sendable {
  private let roots: StorageRoots
  private let options: DownloadOptions

  package init(roots: StorageRoots, options: DownloadOptions = DownloadOptions()) {
    self.roots = roots
    self.options = options
  }

  /// Runs one attempt of `spec`, and continues from `checkpoint`, which earlier runs recorded. Cancel the Swift task to
  /// stop it: it then records the written bytes, if the ledger allows it, and returns ``DownloadOutcome/stopped``.
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

  /// Does the same, but writes to `destination` instead of the task's own destination.
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
  /// The file is at its destination. `sha256` is `nil` if the file was not hashed: it existed already and was left as
  /// it is, or hashing is off. The verification is that of a body that needed one.
  case succeeded(sha256: [UInt8]?, bytes: Int64, Verification? = nil)
  case failed(TaskFailure)
  /// The run was canceled, or the task has another owner. The bytes on disk are recorded as far as that was possible.
  case stopped
}

/// What the downloads to one storage root share.
struct DownloadContext: Sendable {
  let root: StorageRoot
  let options: DownloadOptions
}
