import TaskCore
import TaskStore

/// A server that has served tasks and does so no more.
struct MemoryOutage {
  var isWholeHost: Bool
  var isUnreachable: Bool
  var since: Timestamp
  var failedAt: Timestamp
  /// Since then it serves again.
  var servedAt: Timestamp?
  var failure: TaskFailure

  /// When a task asks again: the longer it has been out, the less often.
  var probeAt: Timestamp {
    let seconds = (failedAt.microseconds - since.microseconds) / 1_000_000
    return failedAt.advanced(bySeconds: Int(min(max(5, seconds), 30)))
  }

  /// Whether it serves none, and attempts do not count.
  func isOn(now: Timestamp) -> Bool {
    servedAt == nil && since.advanced(bySeconds: (isUnreachable ? 24 : 1) * 3600) >= now
  }
}

extension MemoryState {
  mutating func note(_ failure: ServerFailure) -> Bool {
    let outage = outages[failure.server]
    if var outage, outage.servedAt == nil {
      let isOn = outage.isOn(now: now)
      if outage.failedAt.advanced(bySeconds: 1) < now {
        outage.failedAt = now
        outage.isWholeHost = outage.isWholeHost && failure.isWholeHost
        outage.isUnreachable = outage.isUnreachable || failure.isUnreachable
        outage.failure = failure.failure
        outages[failure.server] = outage
      }
      return isOn
    }
    let began = now.advanced(by: .zero - failure.failing)
    let servedAt = outage?.servedAt
    guard failure.isOut, servedAt.map({ $0 < max(began, now.advanced(bySeconds: -30)) }) ?? true else { return false }
    // A server that is back soon costs an attempt or two; one that was out minutes ago and goes again would cost them all.
    let goesAgain =
      outage.map { outage in
        outage.failedAt.advanced(bySeconds: 600) > now
          && outage.servedAt.map { $0.advanced(bySeconds: 5) < now } ?? false
      } ?? false
    guard failure.failing >= (goesAgain ? .seconds(1) : ServerFailure.patience) else { return false }
    outages[failure.server] = MemoryOutage(
      isWholeHost: failure.isWholeHost, isUnreachable: failure.isUnreachable, since: max(began, servedAt ?? began),
      failedAt: now,
      failure: failure.failure)
    return true
  }

  mutating func endOutages(of servers: [TaskServer: Duration]) {
    let hosts = Set(servers.keys.map(\.host))
    for (server, outage) in outages {
      if let age = servers[server] {
        let time = now.advanced(by: .zero - age)
        if time > max(outage.since, outage.servedAt?.advanced(bySeconds: 2) ?? outage.since) {
          outages[server]?.servedAt = time
        }
      } else if hosts.contains(server.host) {
        outages[server]?.isWholeHost = false
      }
    }
  }

  /// The limits of the hosts that are out: one task at a time asks, when it is time. None where none has asked for minutes.
  mutating func putOutagesInForce() {
    outages = outages.filter { $0.value.failedAt.advanced(bySeconds: 3600) >= now }
    outageLimits = Dictionary(grouping: askedOutages, by: \.key.host)
      .filter { $0.value.allSatisfy(\.value.isWholeHost) }
      .mapValues { $0.contains { $0.value.probeAt <= now } ? 1 : 0 }
  }

  private var askedOutages: [TaskServer: MemoryOutage] {
    outages.filter { $0.value.isOn(now: now) && $0.value.probeAt.advanced(bySeconds: 180) > now }
  }

  /// The oldest outage of a server of the host.
  func outage(of host: String) -> HostOutage? {
    askedOutages.filter { $0.key.host == host }.min { $0.value.since < $1.value.since }.map { server, outage in
      HostOutage(
        server: server.name, since: outage.since, probeAt: outage.probeAt, code: outage.failure.code,
        message: outage.failure.message)
    }
  }
}
