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

  private struct Moves {
    /// Whose bytes have moved last.
    var run: RunTable.ID
    var last: BootInstant
    var lastOfOthers: BootInstant?
  }

  /// What was served longer ago tells nothing of now.
  static let memory = Duration.seconds(3600)
  /// Failures that are further apart are not of one outage: while it lasts, a task asks every 80 seconds or sooner.
  static let gap = Duration.seconds(90)
  /// Where bytes have moved so shortly before, the server serves.
  static let recently = Duration.seconds(2)
  /// A server that can be reached may be at odds with a file. With so many it is not.
  static let tasks = 8
  static let serversRemembered = 8192

  /// By host.
  private var servedAt: [String: [TaskServer: BootInstant]] = [:]
  private var remembered = 0
  /// Where bytes have moved of late.
  private var moves: [TaskServer: Moves] = [:]
  private var failing: [TaskServer: Failing] = [:]
  /// When those have served last that have served since the store was told.
  private var untold: [TaskServer: BootInstant] = [:]

  /// The server has served a task.
  mutating func served(_ server: TaskServer, at time: BootInstant) {
    if let failing = failing[server] {
      guard time > failing.since else { return }
      self.failing[server] = nil
    }
    let before = servedAt[server.host]?[server]
    if before == nil {
      if remembered >= Self.serversRemembered { forgetOldest() }
      remembered += 1
    }
    let last = max(time, before ?? time)
    servedAt[server.host, default: [:]][server] = last
    untold[server] = last
  }

  /// The server has sent bytes of `run`, or has confirmed some.
  mutating func moved(_ run: RunTable.ID, at server: TaskServer, now: BootInstant) {
    var moves = moves[server] ?? Moves(run: run, last: now)
    if moves.run != run { (moves.run, moves.lastOfOthers) = (run, moves.last) }
    moves.last = now
    self.moves[server] = moves
  }

  /// When bytes of another run moved there, if that was just now.
  func lastMove(at server: TaskServer, besides run: RunTable.ID, now: BootInstant) -> BootInstant? {
    moves[server].flatMap { $0.run == run ? $0.lastOfOthers : $0.last }
      .flatMap { $0.duration(to: now) < Self.recently ? $0 : nil }
  }

  /// When those have served last that have served since the store was told.
  mutating func untold(now: BootInstant) -> [TaskServer: BootInstant] {
    for (server, moves) in moves { served(server, at: moves.last) }
    moves = moves.filter { $0.value.last.duration(to: now) < Self.recently }
    return untold
  }

  /// The store knows when these have served.
  mutating func told(_ servers: [TaskServer: BootInstant]) {
    untold = untold.filter { server, time in servers[server].map { time > $0 } ?? true }
  }

  /// Of half of the servers.
  private mutating func forgetOldest() {
    let newest = servedAt.values.joined().sorted { $0.value > $1.value }.prefix(Self.serversRemembered / 2)
    remembered = newest.count
    servedAt = Dictionary(grouping: newest, by: \.key.host)
      .mapValues { Dictionary(uniqueKeysWithValues: $0.map { ($0.key, $0.value) }) }
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
    let servers = servedAt[server.host] ?? [:]
    let isKnown = wasServed || servers[server].map { $0.duration(to: run.since) < Self.memory } ?? false
    let isSure = sign == .unreachable || run.tasks.count >= Self.tasks
    return ServerFailure(
      server: server,
      isWholeHost: !servers.contains { other, time in
        other != server && failing[other] == nil && time.duration(to: now) < Self.memory
      },
      failure: failure, isOut: isKnown && isSure, isUnreachable: sign == .unreachable,
      failing: time)
  }
}
