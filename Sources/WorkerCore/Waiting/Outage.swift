import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// Repeated failures. The first with each cause is logged as a warning, the others for debugging.
package struct Outage: Sendable {
  /// The cause that was told last.
  private var told: String?
  /// When each cause was told. Causes that alternate are told once a minute each.
  private var times: [String: BootInstant] = [:]

  private static let pause = Duration.seconds(60)

  package init() {}

  /// The level at which one more failure is logged.
  package mutating func failed(_ error: any Error, now: BootInstant = .now) -> LogLevel {
    let cause = Self.cause(of: error)
    if cause == told { return .debug }
    if let last = times[cause], now < last + Self.pause { return .debug }
    told = cause
    times[cause] = now
    return .warning
  }

  /// Whether the last attempt failed.
  package var isOn: Bool { told != nil }

  /// Returns whether it had failed before.
  @discardableResult
  package mutating func recovered() -> Bool {
    defer { self = Outage() }
    return isOn
  }

  /// What stays the same when the error happens again. Its text may not.
  private static func cause(of error: any Error) -> String {
    switch error {
    case let error as StoreError: error.cause
    case let error as PostgresError: error.cause
    case let error as KafkaError: error.name
    case let error as SystemError: "\(error.errno)"
    default: "\(type(of: error))"
    }
  }
}
