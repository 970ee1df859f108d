import ReelhaulCurl
import TaskCore

/// How a ``DownloadEngine`` works.
package struct DownloadOptions: Sendable {
  package var limits = DownloadLimits()
  /// Off, downloads are not hashed unless a digest is expected. For measuring.
  package var hashes = true
  /// What is gathered before it is written, in bytes per connection.
  package var writeBuffer = 256 << 10
  /// Written bytes go to stable storage at the latest when there are so many …
  package var syncBytes: Int64 = 64 << 20
  /// … or after so long: at most this much is fetched again after a crash.
  package var syncInterval = Duration.seconds(2)
  /// Where a sync, or the record of it, is slow: nothing more is received while so many bytes wait that began to wait
  /// so long ago.
  package var exposure = Duration.seconds(2)
  /// A transfer that stays below this for so long is given up and asked for again.
  package var lowSpeed = CurlRequest.LowSpeed(bytesPerSecond: 512, seconds: 20)
  package var connectTimeout = Duration.seconds(15)
  /// Of one chunk; what has arrived by then is kept.
  package var chunkDeadline = Duration.seconds(300)

  package init() {}
}

/// The numbers a download is steered by. Bytes, counts and milliseconds.
package struct DownloadLimits: Hashable, Sendable {
  /// Asked for with the first request; a source that is no larger takes one round trip.
  package var firstChunk: Int64 = 4 << 20
  package var chunks = ChunkScheduler.Limits()
  /// At most, and at the beginning.
  package var connections = TaskSpec.connectionsLimit.upperBound
  package var firstConnections = 2
  package var redirects = 10
  /// Requests that may fail in a row, without progress, before the attempt does.
  package var retries = 4
  /// The first pause after a failed request; doubles with each.
  package var retryMilliseconds: Int64 = 100
  /// Versions of the source that one attempt starts on before it gives up.
  package var generations = 4
  /// A larger source is asked once more, when all its bytes are there, whether it is still the same.
  package var sealAbove: Int64 = 1 << 20

  package init() {}
}
