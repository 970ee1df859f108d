import ReelhaulSystem
import TaskCore
import TaskStore

/// Finds out whether a failure is the server's: it has served tasks of this worker, and now serves none. Then all of them
/// would use up their attempts within two minutes, however many they are.
///
/// A server that has never served may be a wrong name, and a file that always fails while others are served is its own
/// fault: there, attempts count. The store knows what all workers have found.
struct ServerOutages: Sendable {
  private struct Failing {
    var since: BootInstant
    var last: BootInstant
    /// Some of the tasks that have failed.
    var tasks: Set<UniqueID> = []
  }

  /// What was served longer ago tells nothing of now.
  static let memory = Duration.seconds(3600)
  /// Failures that are further apart are not of one outage.
  static let gap = Duration.seconds(600)
  /// A server that can be reached may be at odds with a file. With so many it is not.
  static let tasks = 8
  static let serversRemembered = 8192

  private var servedAt: [TaskServer: BootInstant] = [:]
  private var failing: [TaskServer: Failing] = [:]
  /// When those have served last that have served since the store was told.
  private(set) var untold: [TaskServer: BootInstant] = [:]

  /// The server has served a task.
  mutating func served(_ server: TaskServer, at time: BootInstant) {
    if let failing = failing[server] {
      guard time > failing.since else { return }
      self.failing[server] = nil
    }
    if servedAt.count >= Self.serversRemembered, servedAt[server] == nil { forgetOldest() }
    let last = max(time, servedAt[server] ?? time)
    servedAt[server] = last
    untold[server] = last
  }

  /// The store knows when these have served.
  mutating func told(_ servers: [TaskServer: BootInstant]) {
    untold = untold.filter { server, time in servers[server].map { time > $0 } ?? true }
  }

  /// Of half of the servers.
  private mutating func forgetOldest() {
    let newest = servedAt.sorted { $0.value > $1.value }.prefix(Self.serversRemembered / 2)
    servedAt = Dictionary(uniqueKeysWithValues: newest.map { ($0.key, $0.value) })
  }

  /// A task has failed with a sign that the server is out. Returns what the store is to be told, which knows more; nil if too
  /// many servers fail. `wasServed`: an earlier attempt of the task was.
  mutating func failed(
    _ task: UniqueID, at server: TaskServer, _ failure: TaskFailure, _ sign: TaskFailure.Code.OutageSign,
    wasServed: Bool, now: BootInstant
  ) -> ServerFailure? {
    if let last = failing[server]?.last, last.duration(to: now) >= Self.gap { failing[server] = nil }
    if failing[server] == nil, failing.count >= Self.serversRemembered {
      failing = failing.filter { $0.value.last.duration(to: now) < Self.gap }
      guard failing.count < Self.serversRemembered else { return nil }
    }
    var run = failing[server] ?? Failing(since: now, last: now)
    run.last = now
    if run.tasks.count < Self.tasks { run.tasks.insert(task) }
    failing[server] = run
    let time = run.since.duration(to: now)
    let isKnown = wasServed || servedAt[server].map { $0.duration(to: run.since) < Self.memory } ?? false
    let isSure = sign == .unreachable || run.tasks.count >= Self.tasks
    return ServerFailure(
      server: server, isWholeHost: !servedAt.keys.contains { $0.host == server.host && $0 != server },
      failure: failure, isOut: isKnown && isSure, isUnreachable: sign == .unreachable,
      failing: time)
  }
}
