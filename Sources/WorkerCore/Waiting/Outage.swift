import ReelhaulTelemetry

/// Repeated failures of one thing. The first is worth a warning; the others are not news.
package struct Outage: Sendable {
  private var isOn = false

  package init() {}

  /// The level at which one more failure is logged.
  package mutating func failed() -> LogLevel {
    defer { isOn = true }
    return isOn ? .debug : .warning
  }

  /// Returns whether it had failed before.
  @discardableResult
  package mutating func recovered() -> Bool {
    defer { isOn = false }
    return isOn
  }
}
