import Curl
import System
import TaskCore

/// What the downloads of one engine loop share.
struct DownloadContext: Sendable {
  let loop: EventLoop
  let client: CurlClient
  let storage: Storage
  /// For calls that wait for a device.
  let files: BlockingPool
  /// For hashing, which takes a core.
  let digests: BlockingPool
  let options: DownloadOptions
}
