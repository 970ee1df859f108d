import ReelhaulSystem

@testable import ReelhaulCurl
@testable import TransferEngine

extension DownloadContext {
  /// A context for a single download without an engine, with one thread each for files and digests. `permits` allows
  /// every address, or none.
  ///
  /// - Parameter rate: the common limit.
  init(
    loop: EventLoop, storage: StorageFixture, permits: Bool, rate: Int64? = nil,
    options: DownloadOptions = DownloadOptions()
  ) {
    self.init(
      root: StorageRoot(
        name: "default", storage: storage.storage, loop: loop,
        client: CurlClient(loop: loop, options: CurlOptions(permits: { _ in permits })),
        files: BlockingPool(name: "files", threads: 1), reads: BlockingPool(name: "reads", threads: 1),
        deletes: BlockingPool(name: "deletes", threads: 1),
        digests: BlockingPool(name: "digests", threads: 1), copies: [:], credentials: nil, usesAWSCredentials: false,
        hosts: HostConnections(limit: 16), held: HeldBytes(), limiter: rate.map { RateLimiter(rate: $0, loop: loop) },
        metrics: TransferMetrics()),
      options: options)
  }

  /// Ends everything except the loop.
  func close() async {
    await root.client.close()
    root.files.shutdown()
    root.reads.shutdown()
    root.deletes.shutdown()
    root.digests.shutdown()
  }
}
