import ReelhaulSystem

@testable import ReelhaulCurl
@testable import TransferEngine

extension DownloadContext {
  /// For a single download without an engine: one thread each for files and digests. `permits`: any address may be reached,
  /// or none.
  init(loop: EventLoop, storage: StorageFixture, permits: Bool, options: DownloadOptions = DownloadOptions()) {
    self.init(
      root: StorageRoot(
        name: "default", storage: storage.storage, loop: loop,
        client: CurlClient(loop: loop, options: CurlOptions(permits: { _ in permits })),
        files: BlockingPool(name: "files", threads: 1), reads: BlockingPool(name: "reads", threads: 1),
        digests: BlockingPool(name: "digests", threads: 1), credentials: nil,
        hosts: HostConnections(limit: 16), limiter: nil),
      options: options)
  }

  /// Ends all but the loop.
  func close() async {
    await root.client.close()
    root.files.shutdown()
    root.reads.shutdown()
    root.digests.shutdown()
  }
}
