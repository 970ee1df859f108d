import CommandLineKit
import TaskCore
import TaskStore
import WorkerOptions

/// Checks the fleet through its store: the workers, tasks that no worker can run, and events that are not published or
/// not delivered to web hooks.
struct FleetDoctor {
  /// How long an event may wait before it is a warning.
  private static let eventPatience = Duration.seconds(60)
  /// Of so many hosts it tells what is the matter.
  private static let mostHosts = 3

  let store: any FleetReader
  /// Nil if the configured prefix is invalid.
  let topicPrefix: String?
  /// Whether to read all tasks and compare the counters.
  let audits: Bool

  func examine() async throws -> [Finding] {
    async let workers = store.workers()
    async let waiting = store.backlog()
    async let hooks = store.waitingHooks()
    async let uses = store.limits()
    async let prefix = store.topicPrefix()
    let (live, backlog, limits) = (try await workers.filter(\.isLive), try await waiting, try await uses)
    let recorded = try await prefix
    // It may take long, and the others would wait for its connection.
    let audit = audits ? [await audit()] : []
    let fleet = topicPrefix.map { [Self.fleet(recorded, configured: $0)] } ?? []
    return fleet + [Self.workers(live)] + Self.kinds(live, wanted: backlog.kinds)
      + Self.storages(live, wanted: backlog.storages) + Self.pairs(live, wanted: backlog.pairs)
      + [
        Self.events(backlog.eventAge, live), Self.hooks(try await hooks, live), Self.hosts(limits), Self.limits(limits),
      ] + audit
  }

  static func fleet(_ recorded: String?, configured: String) -> Finding {
    guard let recorded else {
      return Finding("fleet", .ok, "no topic prefix is recorded yet: 'reelhaul migrate' or the first worker records it")
    }
    guard recorded != configured else { return Finding("fleet", .ok, "it has the topic prefix \(recorded)") }
    let failure = CommandFailure(StoreError.otherFleet(OtherFleet(recorded: recorded, configured: configured)))
    return Finding("fleet", failure, advice: failure.hint)
  }

  static func workers(_ live: [WorkerDocument]) -> Finding {
    guard !live.isEmpty else {
      return Finding("workers", .warning, "none", advice: "Tasks wait until one runs: 'reelhaul worker'.")
    }
    let running = live.reduce(0) { $0 + $1.running }
    return Finding("workers", .ok, "\(live.count) live, running \(running) \(running == 1 ? "task" : "tasks")")
  }

  /// `wanted` are the kinds of tasks that could run now.
  static func kinds(_ live: [WorkerDocument], wanted: Set<TaskKind>) -> [Finding] {
    guard !live.isEmpty else { return [] }
    let missing = live.reduce(wanted) { $0.subtracting($1.kinds) }
    return missing.map(\.rawValue).sorted().map { name in
      Finding(
        "kind \(name)", .failed, "its tasks wait, because no live worker has a handler for it",
        advice: "Start a worker with a handler, or cancel the tasks if the name is wrong.")
    }
  }

  /// `wanted` are the storages of tasks that could run now.
  static func storages(_ live: [WorkerDocument], wanted: Set<String>) -> [Finding] {
    var volumes: [String: Set<UniqueID>] = [:]
    for worker in live { for (name, id) in worker.volumes { volumes[name, default: []].insert(id) } }
    // If there is no worker at all, another finding says so.
    let missing = live.isEmpty ? [] : wanted.filter { volumes[$0] == nil }.sorted()
    let different = volumes.filter { $0.value.count > 1 }.keys.sorted()
    return missing.map { name in
      Finding(
        "storage \(name)", .failed, "tasks wait for it, because no live worker can use it",
        advice: """
          If a worker has it, its log says why it cannot ('a storage is not usable'). If not, give it to one \
          (REELHAUL_STORAGE=\(name)=/PATH), marked with 'reelhaul migrate' if its volume is new, or cancel the tasks.
          """)
    }
      + different.map { name in
        Finding(
          "storage \(name)", .warning, "the workers have \(volumes[name]?.count ?? 0) different volumes of this name",
          advice: "Mount one file system on all of them, or give the volumes different names.")
      }
  }

  /// `wanted` are the two storages of tasks that could run now: one worker must have both.
  static func pairs(_ live: [WorkerDocument], wanted: Set<StoragePair>) -> [Finding] {
    guard !live.isEmpty else { return [] }
    let usable = live.map { Set($0.volumes.keys) }
    return wanted.sorted { ($0.source, $0.destination) < ($1.source, $1.destination) }.compactMap { pair in
      pair.lack(of: usable).map { lack in
        Finding(
          "storages \(pair.source), \(pair.destination)", .failed, "tasks from one to the other wait: \(lack)",
          advice:
            "Give both to one worker (REELHAUL_STORAGE=\(pair.source)=/PATH,\(pair.destination)=/PATH), or cancel the tasks."
        )
      }
    }
  }

  /// `age` is the age of the oldest event that is not published.
  static func events(_ age: Duration, _ live: [WorkerDocument]) -> Finding {
    guard age > eventPatience else { return Finding("events", .ok, "no event waits for long") }
    return Finding(
      "events", .warning, "the oldest event has waited for \(DurationText.brief(age))",
      advice: live.isEmpty
        ? "They are published once a worker runs."
        : "Check in the workers' logs whether they reach Kafka. No event is lost.")
  }

  static func hooks(_ waiting: [HookBacklog], _ live: [WorkerDocument]) -> Finding {
    let late = waiting.filter { $0.age > eventPatience }.sorted { ($1.age, $0.host) < ($0.age, $1.host) }
    guard !late.isEmpty else { return Finding("web hooks", .ok, "no event waits for long") }
    var texts = late.prefix(mostHosts).map { host in
      let count = "\(host.events < FleetGauges.limit ? "" : "at least ")\(host.events)"
      return "\(count) \(host.events == 1 ? "event waits" : "events wait") for web hooks at \(host.host) for "
        + DurationText.brief(host.age) + (host.error.map { ": \($0)" } ?? "")
    }
    let more = late.count - texts.count
    if more > 0 { texts.append("\(more) more \(more == 1 ? "host" : "hosts")") }
    return Finding(
      "web hooks", .warning, texts.joined(separator: "; "),
      advice: live.isEmpty
        ? "They are posted once a worker runs."
        : """
        Mend the receiver, or change the web hook of its queue ('PUT /v1/queues/NAME/notify'). Events are tried for three \
        days; 'reelhaul show TASK' tells those of a task.
        """)
  }

  static func limits(_ limits: [LimitUse]) -> Finding {
    let held = limits.filter { $0.limit == 0 && !$0.isOut }
    let names = held.map { $0.name.isEmpty ? $0.scope.rawValue : "\($0.scope.rawValue) \($0.name)" }
    guard held.isEmpty else {
      // What a handler declares is in force again as soon as nothing else is set.
      let commands = zip(names, held).map { "'reelhaul limit \($0) \($1.declared == 0 ? "5" : "none")'" }
      return Finding(
        "limits", .warning, "0 of \(names.joined(separator: ", ")): their tasks wait",
        advice: "\(commands.joined(separator: ", ")) \(commands.count == 1 ? "releases" : "release") them.")
    }
    let full = limits.count(where: \.isReached)
    return Finding("limits", .ok, "\(limits.count { $0.limit != nil }) set, \(full) reached; see 'reelhaul limits'")
  }

  /// Servers that have served tasks and do so no more.
  static func hosts(_ limits: [LimitUse]) -> Finding {
    let out = limits.compactMap { use in use.outage.map { (use.isOut ? use.name : $0.server, $0) } }
      .sorted { $0.1.since < $1.1.since }
    guard !out.isEmpty else { return Finding("hosts", .ok, "none has stopped serving") }
    var texts = out.prefix(mostHosts).map { "\($0) has served no task since \($1.since): \($1.message)" }
    if out.count > texts.count { texts.append("\(out.count - texts.count) more") }
    return Finding(
      "hosts", .warning, texts.joined(separator: "; "),
      advice: "Their tasks wait without using up attempts, and go on by themselves once one of them is served.")
  }

  private func audit() async -> Finding {
    let violations: [String]
    do {
      violations = try await store.audit()
    } catch {
      return Finding("audit", .failed, "it could not be made: \(error)")
    }
    guard let first = violations.first else {
      return Finding("audit", .ok, "every task is in its place, and every counter is right")
    }
    return Finding(
      "audit", .failed, violations.count == 1 ? first : "\(first), and \(violations.count - 1) more",
      advice:
        "After restoring a dump, see docs/operations.md. Otherwise this is a defect of Reelhaul: please report it.")
  }
}
