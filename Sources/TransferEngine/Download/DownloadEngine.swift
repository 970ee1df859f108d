import Curl
import System
import TaskCore

/// Runs downloads, many at a time, on a few event loops.
package final class DownloadEngine: Sendable {
  private struct Lane {
    let context: DownloadContext
    var running = 0
  }

  private let lanes: Lock<[Lane]>
  private let files: BlockingPool
  private let digests: BlockingPool

  /// - Parameters:
  ///   - loops: one multi handle, and one core, each; not shut down with the engine.
  ///   - permits: asked about every resolved address before it is connected to.
  ///   - credentials: those that tasks may name.
  package init(
    loops: [EventLoop], storage: Storage, permits: @escaping CurlOptions.AddressPredicate,
    credentials: CredentialFile? = nil, options: DownloadOptions = DownloadOptions()
  ) {
    precondition(!loops.isEmpty)
    let files = BlockingPool(name: "files", threads: 8)
    let digests = BlockingPool(name: "digests", threads: 2)
    let limiter = options.rate.map { RateLimiter(rate: $0, loop: loops[0]) }
    let curl = CurlOptions(permits: permits, caFile: options.caFile)
    self.files = files
    self.digests = digests
    lanes = Lock(
      loops.map { loop in
        Lane(
          context: DownloadContext(
            loop: loop, client: CurlClient(loop: loop, options: curl), storage: storage,
            credentials: credentials, files: files, digests: digests, limiter: limiter, options: options))
      })
  }

  /// Runs one attempt of `spec`, from what `checkpoint` recorded of earlier ones. Cancel the task to stop it: it then
  /// records what is written, while the ledger lets it, and returns ``DownloadOutcome/stopped``.
  package func run(
    _ spec: TaskSpec, from checkpoint: Checkpoint?, ledger: any DownloadLedger
  ) async -> DownloadOutcome {
    let (index, context) = lanes.withLock { lanes in
      let index = lanes.indices.min { lanes[$0].running < lanes[$1].running } ?? 0
      lanes[index].running += 1
      return (index, lanes[index].context)
    }
    defer { lanes.withLock { $0[index].running -= 1 } }
    return await DownloadRun(spec: spec, checkpoint: checkpoint, ledger: ledger, context: context).run()
  }

  /// Ends what still runs and frees the connections and threads. Blocks until the threads have ended.
  package func close() async {
    for lane in lanes.withLock({ $0 }) { await lane.context.client.close() }
    files.shutdown()
    digests.shutdown()
  }
}
