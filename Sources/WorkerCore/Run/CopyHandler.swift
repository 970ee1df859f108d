import ReelhaulMessages
import TaskCore
import TaskStore
import TransferEngine

/// Carries out copies: what goes to a storage as downloads do, and all else as uploads do. So the task's places, which
/// never change, tell who reads its checkpoint.
package struct CopyHandler: KindHandler {
  package let kind = TaskKind.copy
  private let downloads: DownloadHandler
  private let uploads: UploadHandler
  private let storages: CopyEngine

  package init(roots: StorageRoots) {
    downloads = DownloadHandler(roots: roots)
    uploads = UploadHandler(roots: roots)
    storages = CopyEngine(roots: roots)
  }

  package func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome {
    guard claim.spec.goesToStorage else { return await uploads.run(claim, ledger: ledger) }
    let outcome =
      if StorageURL.hasScheme(claim.spec.source.utf8) {
        RunOutcome(
          await storages.run(claim.spec, from: claim.checkpoint.flatMap { try? DownloadCheckpoint($0) }, ledger: ledger)
        )
      } else {
        await downloads.run(claim, ledger: ledger)
      }
    guard case .succeeded(let sha256, let bytes, _) = outcome else { return outcome }
    return .succeeded(sha256: sha256, bytes: bytes, output: claim.spec.output(sha256: sha256, bytes: bytes))
  }

  package func cleanUp(_ cleanup: Cleanup) async throws {
    if cleanup.spec.goesToStorage {
      try await downloads.cleanUp(cleanup)
    } else {
      try await uploads.cleanUp(cleanup)
    }
  }
}

extension TaskSpec {
  fileprivate var goesToStorage: Bool { StorageURL.hasScheme((destination ?? "").utf8) }

  /// The output of a copy to a storage. A file that was there already has no digest, unless one was expected.
  fileprivate func output(sha256: [UInt8]?, bytes: Int64) -> [UInt8] {
    let verified: UploadOutput.Verified =
      if expect.sha256 != nil {
        .sha256
      } else if expect.md5 != nil {
        .md5
      } else {
        sha256 != nil || expect.bytes != nil ? .size : .none
      }
    return UploadOutput(location: destination ?? "", bytes: bytes, verified: verified).json
  }
}
