import ReelhaulCurl
import TaskCore

/// The settings of a ``DownloadEngine``.
package struct DownloadOptions: Sendable {
  package var limits = DownloadLimits()
  /// False for measurements: downloads are then hashed only if a digest is expected.
  package var hashes = true
  /// How many bytes each connection gathers before it writes them.
  package var writeBuffer = 256 << 10
  /// And for all connections of a download together.
  package var writeBuffers = 1 << 20
  /// A connection that is slow needs no more than what it moves in this time.
  package var bufferTime = Duration.milliseconds(125)
  /// What it has while its rate is not known.
  package var firstBuffer = 64 << 10
  /// The staging file is synced when it has this many unsynced bytes …
  package var syncBytes: Int64 = 64 << 20
  /// … or this long after the last sync. After a crash only the bytes since the last recorded sync are fetched again.
  package var syncInterval = Duration.seconds(2)
  /// A limit for slow syncs and slow records: while `syncBytes` or more wait to be recorded, and the last recorded sync
  /// began this long ago, nothing more is received.
  package var exposure = Duration.seconds(2)
  /// A transfer that stays below this rate for this long is given up and requested again.
  package var lowSpeed = CurlRequest.LowSpeed(bytesPerSecond: 512, seconds: 20)
  package var connectTimeout = Duration.seconds(15)
  /// The time limit of the request for one chunk. The bytes that have arrived by then are kept.
  package var chunkDeadline = Duration.seconds(300)

  package init() {}
}

/// The numbers that control a download, in bytes, counts and milliseconds.
package struct DownloadLimits: Hashable, Sendable {
  /// The first request asks for this many bytes. A source that is not larger takes one round trip.
  package var firstChunk: Int64 = 4 << 20
  package var chunks = ChunkScheduler.Limits()
  /// At most, and at the beginning.
  package var connections = TaskSpec.connectionsLimit.upperBound
  package var firstConnections = 2
  package var redirects = 10
  /// The attempt fails when more than this many requests fail in a row without progress.
  package var retries = 4
  /// The pause after the first failed request; it doubles with each further failure.
  package var retryMilliseconds: Int64 = 100
  /// How many versions of the source one attempt starts to fetch before it gives up.
  package var generations = 5
  /// When all bytes of a larger source are there, one more request checks that the source is still the same.
  package var sealAbove: Int64 = 1 << 20

  package init() {}
}
