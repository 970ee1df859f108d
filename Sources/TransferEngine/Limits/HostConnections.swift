import ReelhaulSystem

/// The requests that all transfers of this process have running at each host: never more than the limit, with an equal
/// share for each transfer. It also remembers what a transfer learned of a host, for the next one.
///
/// A host is a name or address with its port, as ``CurlURL/server`` gives it. The threads of all loops may call it.
///
/// A storage root may always have one request at a host, even beyond the limit. A root whose file system does not answer
/// gives nothing back, and must not stop the others.
final class HostConnections: Sendable {
  /// What a transfer found out about a host.
  struct Experience: Hashable {
    var connections: Int
    /// Bytes per second of one connection.
    var rate: Int64
  }

  fileprivate struct Host {
    /// Requests that run, by storage root.
    var used: [String: Int] = [:]
    /// The numbers of the transfers that use the host, those that came first in front.
    var transfers: [Int] = []
    var waiting: [Waiter] = []
    var experience: (Experience, at: Int64)?

    var isIdle: Bool { used.isEmpty && transfers.isEmpty && waiting.isEmpty }

    func hasRoom(for root: String, limit: Int) -> Bool {
      used[root] == nil || used.values.reduce(0, +) < limit
    }

    /// Unless others wait, or there is no room.
    mutating func take(_ root: String, limit: Int) -> Bool {
      guard hasRoom(for: root, limit: limit), waiting.isEmpty || used[root] == nil else { return false }
      used[root, default: 0] += 1
      return true
    }

    mutating func giveBack(_ root: String) {
      used[root] = used[root].flatMap { $0 > 1 ? $0 - 1 : nil }
    }

    /// The first who waits and has room now: it has a connection from now on.
    mutating func admit(limit: Int) -> Waiter? {
      guard let index = waiting.firstIndex(where: { hasRoom(for: $0.root, limit: limit) }) else { return nil }
      used[waiting[index].root, default: 0] += 1
      return waiting.remove(at: index)
    }
  }

  fileprivate struct Waiter {
    let number: Int
    let root: String
    let continuation: UnsafeContinuation<Bool, Never>
  }

  fileprivate struct State {
    var hosts: [String: Host] = [:]
    var lastNumber = 0
    /// Waiters that were canceled before they stood in line.
    var canceled: Set<Int> = []
  }

  /// How long an experience is of use, in nanoseconds, and how many hosts are remembered.
  private static let memory = Duration.seconds(600).nanoseconds
  private static let hostsRemembered = 1000

  /// The requests that run at a host at most.
  let limit: Int
  private let state = Lock(State())

  init(limit: Int) {
    self.limit = max(1, limit)
  }

  // MARK: Connections

  /// Takes a connection to `host` for a transfer of `root`, if one is free and nobody waits for one.
  func take(_ host: String, for root: String) -> Bool {
    state.withLock { $0.hosts[host, default: Host()].take(root, limit: limit) }
  }

  /// Takes a connection to `host` as soon as one is free and it is this caller's turn. Throws if the task is canceled
  /// meanwhile.
  func wait(for host: String, for root: String) async throws(CancellationError) {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    let isTaken = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
        let answer = state.withLock { state -> Bool? in
          if state.canceled.remove(number) != nil { return false }
          if state.hosts[host, default: Host()].take(root, limit: limit) { return true }
          state.hosts[host]?.waiting.append(Waiter(number: number, root: root, continuation: continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      cancel(number, at: host)
    }
    state.withLock { _ = $0.canceled.remove(number) }
    guard isTaken else { throw CancellationError() }
  }

  private func cancel(_ number: Int, at host: String) {
    let waiter = state.withLock { state -> Waiter? in
      guard let index = state.hosts[host]?.waiting.firstIndex(where: { $0.number == number }) else {
        state.canceled.insert(number)
        return nil
      }
      return state.hosts[host]?.waiting.remove(at: index)
    }
    waiter?.continuation.resume(returning: false)
  }

  /// Gives a connection back that was taken. Who waits for one may have it.
  func giveBack(_ host: String, for root: String) {
    let next = state.withLock { state -> [Waiter] in
      guard var entry = state.hosts[host] else { return [] }
      entry.giveBack(root)
      defer { state.keep(entry, of: host) }
      var next: [Waiter] = []
      while let waiter = entry.admit(limit: limit) { next.append(waiter) }
      return next
    }
    for waiter in next { waiter.continuation.resume(returning: true) }
  }

  // MARK: Shares

  /// A transfer begins to use `host`. Returns its number.
  func enter(_ host: String) -> Int {
    state.withLock { state in
      state.lastNumber += 1
      state.hosts[host, default: Host()].transfers.append(state.lastNumber)
      return state.lastNumber
    }
  }

  /// The transfer no longer uses `host`.
  func leave(_ host: String, _ transfer: Int) {
    state.withLock { state in
      guard var entry = state.hosts[host] else { return }
      entry.transfers.removeAll { $0 == transfer }
      state.keep(entry, of: host)
    }
  }

  /// How many connections the transfer may have to `host`: at least one. What an equal division leaves over is for those
  /// that came first.
  func share(of host: String, for transfer: Int) -> Int {
    state.withLock { state in
      let transfers = state.hosts[host]?.transfers ?? []
      guard transfers.count < limit, let place = transfers.firstIndex(of: transfer) else { return 1 }
      return limit / transfers.count + (place < limit % transfers.count ? 1 : 0)
    }
  }

  // MARK: Experience

  /// What is known of `host`; `nil` if nothing is, or it is too old.
  func experience(of host: String) -> Experience? {
    let now = Clocks.boottime()
    return state.withLock { state in
      state.hosts[host]?.experience.flatMap { now - $0.at < Self.memory ? $0.0 : nil }
    }
  }

  /// Remembers what a transfer found out about `host`.
  func learned(_ experience: Experience, of host: String) {
    let now = Clocks.boottime()
    state.withLock { state in
      if state.hosts.count >= Self.hostsRemembered {
        state.hosts = state.hosts.filter { !$0.value.isIdle }
      }
      state.hosts[host, default: Host()].experience = (experience, now)
    }
  }

  /// The requests that run at all hosts.
  var used: Int { state.withLock { $0.hosts.values.reduce(0) { $0 + $1.used.values.reduce(0, +) } } }

  // MARK: For tests

  /// How many wait for a connection to `host`.
  func waiting(for host: String) -> Int { state.withLock { $0.hosts[host]?.waiting.count ?? 0 } }

  /// How many hosts are remembered or in use.
  var remembered: Int { state.withLock { $0.hosts.count } }
}

extension HostConnections.State {
  /// Forgets a host that nobody uses, unless something was learned of it.
  fileprivate mutating func keep(_ host: HostConnections.Host, of name: String) {
    hosts[name] = host.isIdle && host.experience == nil ? nil : host
  }
}
