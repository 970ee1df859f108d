import TaskCore

/// The numbers a download is steered by. Bytes, counts and milliseconds.
package struct DownloadLimits: Hashable, Sendable {
  /// Asked for with the first request; a source that is no larger takes one round trip.
  package var firstChunk: Int64 = 4 << 20
  package var chunks = ChunkScheduler.Limits()
  /// At most, and at the beginning.
  package var connections = 4
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
