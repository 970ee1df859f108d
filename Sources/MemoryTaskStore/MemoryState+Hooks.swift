import TaskCore
import TaskStore

/// The delivery of an event to a web hook, of ``MemoryStore``.
struct MemoryHook {
  var delivery: HookDelivery
  /// Until this time, the worker that claimed it works on it.
  var claimedUntil: Timestamp?

  var isOpen: Bool { delivery.gaveUpAt == nil }
}

extension MemoryState {
  private func index(_ task: UniqueID, _ sequence: Int) -> Int? {
    hooks.firstIndex { $0.delivery.event.taskID == task && $0.delivery.event.sequence == sequence }
  }

  mutating func addHooks(_ events: [HookEvent]) {
    for event in events where index(event.taskID, event.sequence) == nil {
      var event = event
      if let queue = event.queue {
        guard let url = queueHooks[queue] else { continue }
        event.go(to: url)
      }
      let waits = hooks.filter { $0.delivery.event.taskID == event.taskID && $0.isOpen }.map(\.delivery.runAt).max()
      hooks.append(MemoryHook(delivery: HookDelivery(event: event, createdAt: now, runAt: waits ?? now)))
    }
    hooks.sort {
      ($0.delivery.event.taskID, $0.delivery.event.sequence) < ($1.delivery.event.taskID, $1.delivery.event.sequence)
    }
  }

  mutating func claimHooks(
    _ worker: WorkerID, limit: Int, perHost: Int, besides underWay: [String: Int], failing: Set<String>, places: Int
  ) -> [HookDelivery] {
    guard let owner = workers[worker], !owner.isDead, owner.leaseUntil > now else { return [] }
    var tasks: Set<UniqueID> = []
    var hosts = underWay
    let first = hooks.indices.filter { hooks[$0].isOpen && tasks.insert(hooks[$0].delivery.event.taskID).inserted }
    let due = first.filter { index in
      let hook = hooks[index]
      return hook.delivery.runAt <= now && hook.claimedUntil.map { $0 < now } ?? true
    }.sorted { hooks[$0].delivery.runAt < hooks[$1].delivery.runAt }.map { index -> (index: Int, place: Int) in
      hosts[hooks[index].delivery.event.host, default: 0] += 1
      return (index, hosts[hooks[index].delivery.event.host, default: 0])
    }
    // Chance decides among equals, as in PostgreSQL.
    let chosen = due.filter { $0.place <= perHost }.shuffled().sorted { $0.place < $1.place }
    var places = places
    let allowed = chosen.filter { index, _ in
      guard failing.contains(hooks[index].delivery.event.host) else { return true }
      places -= 1
      return places >= 0
    }
    return allowed.prefix(limit).map { index, _ in
      hooks[index].delivery.attempt += 1
      hooks[index].delivery.age = .microseconds(now.microseconds - hooks[index].delivery.createdAt.microseconds)
      hooks[index].claimedUntil = now.advanced(bySeconds: 60)
      return hooks[index].delivery
    }
  }

  private mutating func wakeHooks(_ task: UniqueID) {
    for index in hooks.indices where hooks[index].delivery.event.taskID == task && hooks[index].isOpen {
      hooks[index].delivery.runAt = min(hooks[index].delivery.runAt, now)
    }
  }

  mutating func finishHook(_ task: UniqueID, _ sequence: Int) {
    if let index = index(task, sequence) { hooks.remove(at: index) }
    wakeHooks(task)
  }

  /// The delivery of which a failure tells something. Not one that is over, and not one that got another URL while a worker
  /// tried the former one.
  private mutating func tried(_ task: UniqueID, _ sequence: Int) -> Int? {
    guard let index = index(task, sequence), hooks[index].isOpen else { return nil }
    hooks[index].claimedUntil = nil
    return hooks[index].delivery.attempt > 0 ? index : nil
  }

  mutating func postponeHook(_ task: UniqueID, _ sequence: Int, after delay: Duration, error: String) {
    guard let first = tried(task, sequence) else { return }
    hooks[first].delivery.error = error
    for index in hooks.indices {
      let event = hooks[index].delivery.event
      guard event.taskID == task, event.sequence >= sequence, hooks[index].isOpen else { continue }
      hooks[index].delivery.runAt = now.advanced(by: delay)
    }
  }

  mutating func giveUpHook(_ task: UniqueID, _ sequence: Int, error: String) -> Int {
    guard let first = tried(task, sequence) else { return 0 }
    var late = [first]
    let failed = hooks[first].delivery
    let (threeDays, aWeek) = (now.advanced(bySeconds: -3 * 86_400), now.advanced(bySeconds: -7 * 86_400))
    if failed.createdAt < threeDays {
      late += hooks.indices.filter { index in
        let hook = hooks[index]
        let patience = hook.delivery.event.url == failed.event.url ? threeDays : aWeek
        return index != first && hook.isOpen && hook.delivery.event.host == failed.event.host
          && hook.delivery.createdAt < patience && hook.claimedUntil.map { $0 < now } ?? true
      }
    }
    for index in late {
      hooks[index].delivery.gaveUpAt = now
      hooks[index].delivery.error = error
    }
    wakeHooks(task)
    return late.count
  }

  mutating func setQueueHook(_ queue: String, to url: String?) {
    let former = queueHooks[queue]
    if let former, former != url {
      let moved = hooks.indices.filter {
        hooks[$0].isOpen && hooks[$0].delivery.event.url == former && hooks[$0].delivery.event.queue == queue
      }
      for index in moved.reversed() {
        guard let url else {
          hooks.remove(at: index)
          continue
        }
        hooks[index].delivery.event.go(to: url)
        hooks[index].delivery.attempt = 0
        hooks[index].delivery.error = nil
        hooks[index].delivery.createdAt = now
        hooks[index].delivery.runAt = now
      }
    }
    queueHooks[queue] = url
  }

  func waitingHooks() -> [HookBacklog] {
    Dictionary(grouping: hooks.filter(\.isOpen).map(\.delivery), by: \.event.host).map { host, deliveries in
      HookBacklog(
        host: host, events: deliveries.count,
        age: .microseconds(deliveries.map { now.microseconds - $0.createdAt.microseconds }.max() ?? 0),
        error: deliveries.filter { $0.error != nil }.min { $0.attempt < $1.attempt }?.error)
    }
  }
}

extension HookEvent {
  fileprivate mutating func go(to url: String) {
    self.url = url
    host = (try? WebURL(url))?.host ?? ""
  }
}

extension MemoryStore {
  package func addHooks(_ events: [HookEvent]) async throws { transaction { $0.addHooks(events) } }

  package func claimHooks(
    _ worker: WorkerID, limit: Int, perHost: Int, besides underWay: [String: Int], failing: Set<String>, places: Int
  ) async throws -> [HookDelivery] {
    transaction {
      $0.claimHooks(
        worker, limit: limit, perHost: perHost, besides: underWay, failing: failing, places: places)
    }
  }

  package func finishHook(_ task: UniqueID, sequence: Int) async throws {
    transaction { $0.finishHook(task, sequence) }
  }

  package func postponeHook(_ task: UniqueID, sequence: Int, after delay: Duration, error: String) async throws {
    transaction { $0.postponeHook(task, sequence, after: delay, error: error) }
  }

  package func giveUpHook(_ task: UniqueID, sequence: Int, error: String) async throws -> Int {
    transaction { $0.giveUpHook(task, sequence, error: error) }
  }

  package func undeliveredHooks(of task: UniqueID) async throws -> [HookDelivery] {
    transaction { state in
      Array(state.hooks.map(\.delivery).filter { $0.event.taskID == task }.prefix(100))
    }
  }

  package func queueHooks() async throws -> [String: String] { transaction { $0.queueHooks } }

  package func setQueueHook(_ queue: String, to url: String?) async throws {
    transaction { $0.setQueueHook(queue, to: url) }
  }

  package func waitingHooks() async throws -> [HookBacklog] { transaction { $0.waitingHooks() } }
}
