/// How long to wait before a process that ended by itself is started again. The wait grows each time, and is short
/// again after the process has run for a while.
package struct RestartBackoff: Sendable, Hashable {
  private static let first: Duration = .milliseconds(500)
  private static let longest: Duration = .seconds(30)
  /// A process that ran this long was healthy.
  private static let healthy: Duration = .seconds(60)

  private var next = Self.first

  package init() {}

  /// `uptime` is how long it has run.
  package mutating func delay(afterRunning uptime: Duration) -> Duration {
    if uptime >= Self.healthy { next = Self.first }
    defer { next = min(next * 2, Self.longest) }
    return next
  }
}
