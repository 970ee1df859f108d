import ReelhaulSystem
import TaskStore

/// Finds out how many tasks of a host a worker can make use of at once. If it has more of them, they stand in line for a
/// connection, and take places that tasks of other hosts could use; or the host refuses them, because it serves other workers.
struct HostLines: Sendable {
  /// The runs of a host.
  struct Host: Sendable {
    private(set) var working = 0
    private(set) var inLine = 0
    /// The servers where runs work, and those where one has stood in line for long: a name may have several servers, and
    /// redirects lead to others.
    private(set) var serving: Set<String> = []
    private(set) var crowded: Set<String> = []
    /// Whether bytes of one move.
    private(set) var isServed = false

    /// Adds a run; `time` is nil if it does not stand in line.
    mutating func add(at server: String?, inLineFor time: Duration?, isMoving: Bool) {
      isServed = isServed || isMoving
      if let time {
        inLine += 1
        if time >= HostLines.patience { crowded.insert(server ?? "") }
      } else {
        working += 1
        if let server { serving.insert(server) }
      }
    }
  }

  private struct Line {
    var limit = 1
    var lastSeen: BootInstant
    /// When each server was last seen crowded.
    var crowded: [String: BootInstant] = [:]
    /// Since when runs work at a server that is not crowded.
    var elsewhereSince: BootInstant?
    /// When bytes moved last.
    var servedAt: BootInstant?
    /// When runs were handed back last.
    var relievedAt: BootInstant?

    func isServed(now: BootInstant) -> Bool { servedAt.map { $0.duration(to: now) < HostLines.memory } ?? false }

    /// A limit would also keep tasks from servers that could serve more.
    func isElsewhere(now: BootInstant) -> Bool {
      elsewhereSince.map { $0.duration(to: now) >= HostLines.patience } ?? false
    }

    mutating func look(at host: Host, reserve: Int, now: BootInstant) {
      let use = max(1, host.working + reserve)
      if host.inLine == 0 {
        limit = max(limit, use)
      } else {
        (limit, lastSeen) = (use, now)
      }
      if host.isServed { servedAt = now }
      crowded = crowded.filter { $0.value.duration(to: now) < HostLines.memory }
      for server in host.crowded { crowded[server] = now }
      let isElsewhere = host.serving.contains { crowded[$0] == nil }
      elsewhereSince = isElsewhere ? elsewhereSince ?? now : nil
    }
  }

  /// A line that moves faster delays the tasks of other hosts by less than this, and is none.
  static let patience = Duration.seconds(5)
  /// A limit ends so long after the last look that found a run in line, or the last refusal: the host may serve more by now.
  fileprivate static let memory = Duration.seconds(30)

  /// So many runs of a host may stand in line: they take the connections that become free, until others are claimed.
  let reserve: Int
  private var lines: [String: Line] = [:]
  /// When hosts refused a run; of so many hosts.
  private var refusals: [String: BootInstant] = [:]
  private static let hostsRemembered = 256
  /// The hosts of which the fleet runs no more tasks than it can make use of.
  var limited: Set<String> = []

  /// `concurrency`: how many tasks the worker runs at once.
  init(concurrency: Int) {
    reserve = min(2, concurrency / 4)
  }

  /// No host has a limit.
  var isEmpty: Bool { lines.isEmpty && refusals.isEmpty }

  /// The host refused a run; `servesOthers`: bytes of other runs move. Returns whether that is because it serves tasks of
  /// other workers, which stand in line there, and none of this one.
  mutating func refused(by host: String, servesOthers: Bool, now: BootInstant) -> Bool {
    if refusals.count < Self.hostsRemembered || refusals[host] != nil { refusals[host] = now }
    return limited.contains(host) && !servesOthers && lines[host]?.isServed(now: now) != true
  }

  /// The limits that follow from the runs of this moment.
  mutating func limits(_ hosts: [String: Host], now: BootInstant) -> [String: HostLimit] {
    lines = lines.filter { $0.value.lastSeen.duration(to: now) < Self.memory }
    refusals = refusals.filter { $0.value.duration(to: now) < Self.memory }
    for (name, host) in hosts where !host.crowded.isEmpty || lines[name] != nil {
      lines[name, default: Line(lastSeen: now)].look(at: host, reserve: reserve, now: now)
    }
    let refusing = refusals.keys.map { ($0, HostLimit(hosts[$0]?.working ?? 0, isRefusing: true)) }
    // Where the host refuses some and serves none, the others stand in line for nothing.
    let told = lines.filter { name, line in
      !line.isElsewhere(now: now) && (refusals[name] == nil || line.isServed(now: now))
    }
    return told.mapValues { HostLimit($0.limit) }.merging(refusing) { line, _ in line }
  }

  /// Whether runs that stand in line for the host are to be handed back now. Not all the time: if no other worker can run
  /// them, this one claims them again.
  mutating func mayRelieve(_ host: String, now: BootInstant) -> Bool {
    guard limited.contains(host), lines[host]?.relievedAt.map({ $0.duration(to: now) >= Self.memory }) ?? true else {
      return false
    }
    lines[host]?.relievedAt = now
    return true
  }
}
