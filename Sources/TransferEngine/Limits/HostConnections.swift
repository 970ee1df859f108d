import ReelhaulSystem

/// The connections of all transfers of this process to each host: never more than the limit, shared equally, and what
/// was learned of a host for the next transfer.
///
/// A host is a name or address with its port, as ``CurlURL/server`` gives it. The threads of all loops may call it.
final class HostConnections: Sendable {
  /// What the last transfer of a host found out.
  struct Experience: Hashable {
    var connections: Int
    /// Bytes per second of one connection.
    var rate: Int64?
  }

  fileprivate struct Host {
    var used = 0
    var transfers = 0
    var waiting: [(number: Int, continuation: UnsafeContinuation<Bool, Never>)] = []
    var experience: (Experience, at: Int64)?

    var isIdle: Bool { used == 0 && transfers == 0 && waiting.isEmpty }
  }

  fileprivate struct State {
    var hosts: [String: Host] = [:]
    var lastNumber = 0
    /// Waiters that were canceled before they stood in line.
    var canceled: Set<Int> = []
  }

  /// For how long an experience is of use, in nanoseconds, and of how many hosts one is kept.
  private static let memory = Duration.seconds(600).nanoseconds
  private static let hostsRemembered = 1000

  /// The connections that a host gets at most.
  let limit: Int
  private let state = Lock(State())

  init(limit: Int) {
    self.limit = max(1, limit)
  }

  // MARK: Connections

  /// Takes a connection to `host` if one is free and nobody waits for one.
  func take(_ host: String) -> Bool {
    state.withLock { state in
      let free = state.hosts[host].map { $0.used < limit && $0.waiting.isEmpty } ?? true
      if free { state.hosts[host, default: Host()].used += 1 }
      return free
    }
  }

  /// Takes a connection to `host`, as soon as one is free and it is this caller's turn. Throws where the task is
  /// canceled meanwhile.
  func wait(for host: String) async throws(CancellationError) {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    let isTaken = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
        let answer: Bool? = state.withLock { state in
          if state.canceled.remove(number) != nil { return false }
          if state.hosts[host, default: Host()].used < limit, state.hosts[host, default: Host()].waiting.isEmpty {
            state.hosts[host, default: Host()].used += 1
            return true
          }
          state.hosts[host, default: Host()].waiting.append((number, continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      let waiter = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
        guard let index = state.hosts[host]?.waiting.firstIndex(where: { $0.number == number }) else {
          state.canceled.insert(number)
          return nil
        }
        return state.hosts[host]?.waiting.remove(at: index).continuation
      }
      waiter?.resume(returning: false)
    }
    state.withLock { _ = $0.canceled.remove(number) }
    guard isTaken else { throw CancellationError() }
  }

  /// Gives a connection back that was taken: the next one that waits has it.
  func giveBack(_ host: String) {
    let next = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
      guard var entry = state.hosts[host] else { return nil }
      defer { state.keep(entry, of: host) }
      guard !entry.waiting.isEmpty else {
        entry.used -= 1
        return nil
      }
      return entry.waiting.removeFirst().continuation
    }
    next?.resume(returning: true)
  }

  // MARK: Shares

  /// A transfer begins to use `host`.
  func enter(_ host: String) {
    state.withLock { $0.hosts[host, default: Host()].transfers += 1 }
  }

  /// It does not use it any more.
  func leave(_ host: String) {
    state.withLock { state in
      guard var entry = state.hosts[host] else { return }
      entry.transfers -= 1
      state.keep(entry, of: host)
    }
  }

  /// How many connections one transfer may have to `host`, at least one.
  func share(of host: String) -> Int {
    state.withLock { max(1, limit / max(1, $0.hosts[host]?.transfers ?? 1)) }
  }

  // MARK: Experience

  /// What is known of `host`, if it is not too old.
  func experience(of host: String) -> Experience? {
    let now = Clocks.boottime()
    return state.withLock { state in
      state.hosts[host]?.experience.flatMap { now - $0.at < Self.memory ? $0.0 : nil }
    }
  }

  func learned(_ experience: Experience, of host: String) {
    let now = Clocks.boottime()
    state.withLock { state in
      if state.hosts.count >= Self.hostsRemembered {
        state.hosts = state.hosts.filter { !$0.value.isIdle }
      }
      state.hosts[host, default: Host()].experience = (experience, now)
    }
  }

  // MARK: For tests

  /// How many wait for a connection to `host`.
  func waiting(for host: String) -> Int { state.withLock { $0.hosts[host]?.waiting.count ?? 0 } }

  /// How many hosts are kept.
  var remembered: Int { state.withLock { $0.hosts.count } }
}

extension HostConnections.State {
  /// A host that nobody uses is forgotten, unless something was learned of it.
  fileprivate mutating func keep(_ host: HostConnections.Host, of name: String) {
    hosts[name] = host.isIdle && host.experience == nil ? nil : host
  }
}
