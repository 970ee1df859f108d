import ReelhaulTelemetry
import TaskCore

/// What the transfers of a process count. Any thread may add to it.
package final class TransferMetrics: Sendable {
  package enum Direction: Int, CaseIterable, Sendable {
    /// From a server to this worker.
    case download
    /// From this worker to a server.
    case upload
    /// From one storage of this worker to another.
    case copy
  }

  /// Of the place that the bytes come from or go to, in the task's words.
  package enum Scheme: Int, CaseIterable, Sendable {
    case http, https, s3, tus, storage

    init(_ url: String) {
      self =
        switch try? ResourceURL(url) {
        case .s3?: .s3
        case .tus?: .tus
        case .storage?: .storage
        case .web, nil: url.prefix(6).lowercased() == "https:" ? .https : .http
        }
    }
  }

  /// Why bytes that had been received are fetched again.
  package enum RefetchCause: Int, CaseIterable, Sendable {
    /// They came after another request had taken over their range.
    case steal
    /// The run could not keep them for the next one, because the source has no validator or no ranges.
    case retry
    /// The source has another version.
    case newGeneration
    /// They were written but not recorded when the run lost its task.
    case lostLease
    /// They were recorded, but their staging file is gone or not as it was recorded.
    case lostFile
  }

  package enum PartResult: Int, CaseIterable, Sendable {
    case stored, failed
  }

  package let bytes = CountedMetric.counter(
    "reelhaul_transfer_bytes_total", .direction, .scheme, help: "Bytes of files that were received, sent or copied.")
  package let refetched = CountedMetric.counter(
    "reelhaul_transfer_refetched_bytes_total", MetricLabel("cause", RefetchCause.self),
    help: "Bytes that were received and must be fetched again.")
  package let active = CountedMetric.gauge(
    "reelhaul_transfers_active", .scheme, help: "Transfers that run.")
  package let parts = CountedMetric.counter(
    "reelhaul_upload_parts_total", .scheme, MetricLabel("result", PartResult.self),
    help: "Requests that sent a part of an upload, or the whole file.")

  package init() {}

  func moved(_ count: Int, _ direction: Direction, _ scheme: Scheme) {
    bytes.add(count, direction.rawValue, scheme.rawValue)
  }

  func wasted(_ count: Int64, _ cause: RefetchCause) {
    if count > 0 { refetched.add(Int(count), cause.rawValue) }
  }

  func begun(_ scheme: Scheme) { active.add(1, scheme.rawValue) }

  func ended(_ scheme: Scheme) { active.add(-1, scheme.rawValue) }
}

extension MetricLabel {
  fileprivate static let direction = MetricLabel("direction", TransferMetrics.Direction.self)
  fileprivate static let scheme = MetricLabel("scheme", TransferMetrics.Scheme.self)
}

extension StorageRoots {
  /// Adds what the transfers of these roots have counted.
  package func write(to text: inout MetricsSnapshot) {
    text.add(metrics.bytes, metrics.refetched, metrics.active, metrics.parts, storage.syncs)
    text.add(
      "reelhaul_connections_active", Double(hosts.used),
      help: "Requests that run at the hosts of sources and destinations.")
  }
}
