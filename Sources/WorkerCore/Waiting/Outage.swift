import ReelhaulTelemetry

/// Failures of one thing in a row: the first is worth a warning, the others tell nothing new.
package struct Outage: Sendable {
  private var isOn = false

  package init() {}

  /// At which level one more failure is logged.
  package mutating func failed() -> LogLevel {
    defer { isOn = true }
    return isOn ? .debug : .warning
  }

  /// Whether it had failed before.
  @discardableResult
  package mutating func recovered() -> Bool {
    defer { isOn = false }
    return isOn
  }
}
