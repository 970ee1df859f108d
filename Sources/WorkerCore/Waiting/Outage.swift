import ReelhaulTelemetry

/// Repeated failures with one cause. The first is logged as a warning, the others for debugging.
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
