import TaskCore
import TaskStore
import TransferEngine

/// Carries out downloads with the transfer engine.
package struct DownloadHandler: KindHandler {
  package let kind = TaskKind.download
  private let engine: DownloadEngine

  package init(engine: DownloadEngine) {
    self.engine = engine
  }

  package func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome {
    // What cannot be read is of another version of this program: the bytes are fetched anew.
    let checkpoint = claim.checkpoint.flatMap { try? DownloadCheckpoint($0) }
    return switch await engine.run(claim.spec, from: checkpoint, ledger: ledger) {
    case .succeeded(let sha256, let bytes): .succeeded(sha256: sha256, bytes: bytes)
    case .failed(let failure): .failed(failure)
    case .stopped: .stopped
    }
  }
}

extension RunLedger: DownloadLedger {
  package func checkpoint(_ checkpoint: DownloadCheckpoint) async throws {
    try await self.checkpoint(checkpoint.envelope)
  }
}
