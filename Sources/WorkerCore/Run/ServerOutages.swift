import ReelhaulSystem
import TaskCore
import TaskStore

/// Finds out whether a failure is the server's: it has served tasks of this worker, and now serves none. Then all of them
/// would use up their attempts within two minutes, however many they are.
///
/// A server that has never served may be a wrong name, and a file that always fails while others are served is its own
/// fault: there, attempts count. The store knows what all workers have found.
struct ServerOutages: Sendable {
  /// Where the tasks of a host are.
  struct Server: Hashable, Sendable {
    /// As limits know it: without a port.
    var host: String
    /// `host:port`, or `BUCKET.s3`.
    var name: String

    /// Nil for tasks whose failures tell nothing of one server: those of other kinds, without a server, or with two.
    init?(_ spec: TaskSpec) {
      guard spec.kind.isTransfer else { return nil }
      var servers: [Self] = []
      for text in [spec.source, spec.destination].compactMap({ $0 }) where !StorageURL.hasScheme(text.utf8) {
        switch try? ResourceURL(text) {
        case .web(let url): servers.append(Self(url))
        case .tus(let url): servers.append(Self(url.endpoint))
        case .s3, .storage, nil: servers.append(Self(host: "", name: ""))
        }
      }
      guard let first = servers.first, servers.allSatisfy({ $0 == first }) else { return nil }
      self = first
      host = LaneKey(spec).host
      if name.isEmpty { name = host }
    }

    private init(_ url: WebURL) {
      self.init(host: "", name: "\(LaneKey.host(of: url)):\(url.port ?? (url.scheme == .http ? 80 : 443))")
    }

    private init(host: String, name: String) {
      (self.host, self.name) = (host, name)
    }
  }

  private struct Failing {
    var since: BootInstant
    var last: BootInstant
    /// Some of the tasks that have failed.
    var tasks: Set<UniqueID> = []
  }

  /// A server that is back sooner costs an attempt or two, and its tasks need not wait.
  static let patience = Duration.seconds(5)
  /// What was served longer ago tells nothing of now.
  static let memory = Duration.seconds(3600)
  /// Failures that are further apart are not of one outage.
  static let gap = Duration.seconds(600)
  /// A server that can be reached may be at odds with a file. With so many it is not.
  static let tasks = 8
  private static let serversRemembered = 1024

  private var servedAt: [String: BootInstant] = [:]
  /// The host of each of these.
  private var hosts: [String: String] = [:]
  private var failing: [String: Failing] = [:]
  /// Those that have served since the store was told.
  private var untold: Set<String> = []

  /// The server has served a task.
  mutating func served(_ server: Server, at time: BootInstant) {
    if let failing = failing[server.name] {
      guard time > failing.since else { return }
      self.failing[server.name] = nil
    }
    if servedAt.count >= Self.serversRemembered, servedAt[server.name] == nil { forgetOldest() }
    servedAt[server.name] = max(time, servedAt[server.name] ?? time)
    hosts[server.name] = server.host
    untold.insert(server.name)
  }

  /// Of half of the servers.
  private mutating func forgetOldest() {
    let newest = servedAt.sorted { $0.value > $1.value }.prefix(Self.serversRemembered / 2).map { ($0.key, $0.value) }
    servedAt = Dictionary(uniqueKeysWithValues: newest)
    hosts = hosts.filter { servedAt[$0.key] != nil }
    untold = untold.filter { servedAt[$0] != nil }
  }

  /// A task has failed. Nil if this tells nothing of the server; otherwise what the store is to be told, which knows more.
  /// `wasServed`: an earlier attempt of the task was.
  mutating func failed(
    _ task: UniqueID, at server: Server, _ failure: TaskFailure, wasServed: Bool, now: BootInstant
  ) -> ServerFailure? {
    guard failure.class == .retry, let sign = failure.code.signOfOutage else { return nil }
    failing = failing.filter { $0.value.last.duration(to: now) < Self.gap }
    guard failing.count < Self.serversRemembered || failing[server.name] != nil else { return nil }
    var run = failing[server.name] ?? Failing(since: now, last: now)
    run.last = now
    if run.tasks.count < Self.tasks { run.tasks.insert(task) }
    failing[server.name] = run
    let time = run.since.duration(to: now)
    let isKnown = wasServed || servedAt[server.name].map { $0.duration(to: run.since) < Self.memory } ?? false
    let isSure = sign == .unreachable || run.tasks.count >= Self.tasks
    let hasOthers = hosts.contains { $0.value == server.host && $0.key != server.name }
    return ServerFailure(
      server: server.name, host: server.host, isWholeHost: !hasOthers, failure: failure,
      isOut: isKnown && isSure && time >= Self.patience, failing: time)
  }

  /// The servers that have served since the last call.
  mutating func takeServed() -> Set<String> {
    defer { untold = [] }
    return untold
  }
}
