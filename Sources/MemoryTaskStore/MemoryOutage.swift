import TaskCore
import TaskStore

/// A server that has served tasks and does so no more.
struct MemoryOutage {
  var host: String
  var isWholeHost: Bool
  var since: Timestamp
  var failedAt: Timestamp
  var failure: TaskFailure

  /// When a task asks again: the longer it has been out, the less often.
  var probeAt: Timestamp {
    let seconds = (failedAt.microseconds - since.microseconds) / 1_000_000
    return failedAt.advanced(bySeconds: Int(min(max(5, seconds), 60)))
  }

  /// Whether attempts do not count.
  func holds(now: Timestamp) -> Bool {
    let hours = failure.code.signOfOutage == .unreachable ? 24 : 1
    return since.advanced(bySeconds: hours * 3600) >= now
  }
}

extension MemoryState {
  mutating func note(_ failure: ServerFailure) -> Bool {
    guard var outage = outages[failure.server] else {
      guard failure.isOut else { return false }
      outages[failure.server] = MemoryOutage(
        host: failure.host, isWholeHost: failure.isWholeHost, since: now.advanced(by: .zero - failure.failing),
        failedAt: now, failure: failure.failure)
      return true
    }
    if outage.failedAt.advanced(bySeconds: 1) < now {
      outage.failedAt = now
      outage.isWholeHost = outage.isWholeHost && failure.isWholeHost
      outage.failure = failure.failure
      outages[failure.server] = outage
    }
    return outage.holds(now: now)
  }

  /// The limits of the hosts that are out: one task at a time asks, when it is time.
  mutating func putOutagesInForce() {
    outages = outages.filter { $0.value.failedAt.advanced(bySeconds: 3600) >= now }
    outageLimits = Dictionary(grouping: outages.values, by: \.host)
      .filter { $0.value.allSatisfy { $0.isWholeHost && $0.holds(now: now) } }
      .mapValues { $0.contains { $0.probeAt <= now } ? 1 : 0 }
  }

  /// The oldest outage of a server of the host.
  func outage(of host: String) -> HostOutage? {
    outages.values.filter { $0.host == host }.min { $0.since < $1.since }.map {
      HostOutage(since: $0.since, probeAt: $0.probeAt, code: $0.failure.code, message: $0.failure.message)
    }
  }
}
