import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// What the downloads to one storage root share.
struct DownloadContext: Sendable {
  let loop: EventLoop
  let client: CurlClient
  let storage: Storage
  let credentials: CredentialFile?
  /// For calls that wait for a device.
  let files: BlockingPool
  /// For reads of whole files that lie there already: nothing that moves bytes waits for them.
  let reads: BlockingPool
  /// For hashing, which takes a core.
  let digests: BlockingPool
  /// What all downloads of the engine keep together.
  let limiter: RateLimiter?
  let options: DownloadOptions
}

extension DownloadContext {
  /// Runs a call that may read a whole file; until it gets a thread the run's pulse is felt.
  func readWhole<Result: Sendable>(
    for ledger: any DownloadLedger, _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    let waiting = loop.task { [loop] in
      while (try? await loop.sleep(for: .seconds(10))) != nil { ledger.pulse() }
    }
    defer { waiting.cancel() }
    return try await reads.run {
      waiting.cancel()
      return try body()
    }
  }
}
