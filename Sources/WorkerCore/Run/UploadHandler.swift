import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore
import TransferEngine

/// Carries out uploads with the transfer engine.
package struct UploadHandler: KindHandler {
  package let kind = TaskKind.upload
  private let engine: UploadEngine

  package init(roots: StorageRoots) {
    engine = UploadEngine(roots: roots)
  }

  package func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome {
    let checkpoint: UploadCheckpoint?
    do throws(DecodingFailure) {
      checkpoint = try claim.checkpoint.map { envelope throws(DecodingFailure) in try UploadCheckpoint(envelope) }
    } catch {
      // It may name an upload that only a worker of another version can find again.
      return .failed(
        TaskFailure(
          code: .checkpointUnreadable, message: "this worker cannot read the checkpoint: \(error)", class: .wait))
    }
    let outcome = await HostLine.$current.withValue(ledger.line) {
      await engine.run(claim.spec, from: checkpoint, ledger: ledger)
    }
    return switch outcome {
    case .succeeded(let object, let bytes):
      .succeeded(
        sha256: claim.spec.expect.sha256, bytes: bytes,
        output: UploadOutput(
          location: object.location ?? claim.spec.destination ?? "", etag: object.etag, versionID: object.versionID,
          bytes: bytes, verified: object.verified, remark: object.remark
        ).json)
    case .failed(let failure): .failed(failure)
    case .stopped: .stopped
    }
  }

  package func cleanUp(_ cleanup: Cleanup) async throws {
    guard let checkpoint = try cleanup.checkpoint.map({ try UploadCheckpoint($0) }) else { return }
    try await engine.abort(cleanup.spec, from: checkpoint)
  }
}

extension RunLedger: UploadLedger {
  package func checkpoint(_ checkpoint: UploadCheckpoint) async throws {
    try await self.checkpoint(checkpoint.envelope)
  }

  package var beginsAnew: Bool { claim.beginsAnew }
}
