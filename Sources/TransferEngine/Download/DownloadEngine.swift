import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// Runs downloads, many at a time.
///
/// Every storage root has threads of its own, those that write to it too: a root whose file system does not answer
/// holds up no download to another.
package final class DownloadEngine: Sendable {
  /// By root.
  private let contexts: [String: DownloadContext]

  /// - Parameters:
  ///   - loop: where the limit of the rate is timed; not shut down with the engine.
  ///   - permits: asked about every resolved address before it is connected to.
  ///   - credentials: those that tasks may name.
  package init(
    loop: EventLoop, storage: Storage, permits: @escaping CurlOptions.AddressPredicate,
    credentials: CredentialFile? = nil, options: DownloadOptions = DownloadOptions()
  ) {
    let limiter = options.rate.map { RateLimiter(rate: $0, loop: loop) }
    let curl = CurlOptions(permits: permits, caFile: options.caFile)
    contexts = Dictionary(
      uniqueKeysWithValues: storage.roots.keys.map { root in
        let loop = EventLoop(name: "engine-\(root)")
        let context = DownloadContext(
          loop: loop, client: CurlClient(loop: loop, options: curl), storage: storage, credentials: credentials,
          files: BlockingPool(name: "files-\(root)", threads: 8),
          reads: BlockingPool(name: "reads-\(root)", threads: 4),
          digests: BlockingPool(name: "digests-\(root)", threads: 2), limiter: limiter, options: options)
        return (root, context)
      })
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
    guard let context = contexts[destination.root] else {
      return .failed(StorageError.unknownRoot(destination.root).failure)
    }
    return await DownloadRun(
      spec: spec, destination: destination, checkpoint: checkpoint, ledger: ledger, context: context
    ).run()
  }

  /// Ends what still runs and frees the connections and threads. Blocks until the threads have ended.
  package func close() async {
    for context in contexts.values {
      await context.client.close()
      context.files.shutdown()
      context.reads.shutdown()
      context.digests.shutdown()
      context.loop.shutdown()
    }
  }
}
