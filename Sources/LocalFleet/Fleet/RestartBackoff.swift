import ReelhaulSystem

/// How long to wait before a process that ended by itself is started again: longer each time, and little again once it
/// has run for a while. Exact: the processes of one machine need no spreading.
package struct RestartBackoff: Sendable {
  /// A process that has run for this long counts as healthy.
  private static let healthy: Duration = .seconds(60)

  private var backoff = Backoff(base: .milliseconds(500), limit: .seconds(30), spread: 1...1)

  package init() {}

  /// `uptime` is how long it has run. `wasAsked`: it ended in order, because somebody asked it to.
  package mutating func delay(afterRunning uptime: Duration, wasAsked: Bool = false) -> Duration {
    if uptime >= Self.healthy || wasAsked { backoff.reset() }
    return backoff.next()
  }
}
