import Curl
import System
import TaskCore

/// What the downloads to one storage root share.
struct DownloadContext: Sendable {
  let loop: EventLoop
  let client: CurlClient
  let storage: Storage
  let credentials: CredentialFile?
  /// For calls that wait for a device.
  let files: BlockingPool
  /// For hashing, which takes a core.
  let digests: BlockingPool
  /// What all downloads of the engine keep together.
  let limiter: RateLimiter?
  let options: DownloadOptions
}
