import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// The requests that all transfers of this process have running at each host: never more than the limit, with an equal
/// share for each transfer. It also remembers what a transfer learned of a host, for the next one.
///
/// A host may allow fewer than the limit. It then refuses requests while it serves others of this process. From then on
/// it gets as many as it had without the refused one. After some time without a refusal, one more is tried.
///
/// A host is a name or address with its port, as ``CurlURL/server`` gives it. The threads of all loops may call it.
///
/// A storage root may always have one request at a host, even beyond the limit, but not beyond what the host allows. A
/// root whose file system does not answer gives nothing back, and must not stop the others.
///
/// A relay, whose body is read from a server while it is sent, keeps its connection until those reads have had theirs,
/// which may be at this host or at one whose relays read here. So relays get no more than half of the connections, and
/// one other request may always run beside them. It ends without another connection, so all that wait have their turn.
final class HostConnections: Sendable {
  /// What a transfer found out about a host.
  struct Experience: Hashable {
    var connections: Int
    /// Bytes per second of one connection.
    var rate: Int64
  }

  /// What the host made of a request.
  enum Fate {
    /// It sent what was asked for, or took what was sent; ``served(_:)`` was told.
    case served
    /// It took no more requests: 429, 503, or the connection ended before an answer.
    case refused
    /// Like ``refused``. The caller itself sends less then, so it teaches nothing.
    case refusedUpload
    case other

    /// - Parameter status: nil if there was no answer, because of `error`.
    init(status: Int?, error: CurlError.Code? = nil) {
      let isRefused =
        status.map(TaskFailure.Code.refusals.contains) ?? error.map(Self.refusals.contains) ?? false
      self = isRefused ? .refused : .other
    }

    /// How a connection ends before an answer, where a server takes no more of them.
    private static let refusals: Set<CurlError.Code> = [
      .connectFailed, .tlsFailed, .noResponse, .sendFailed, .receiveFailed,
    ]
  }

  private struct State {
    var hosts: [String: Host] = [:]
    var lastNumber = 0

    /// Forgets a host that nobody uses, unless something was learned of it.
    mutating func keep(_ host: Host, of name: String) {
      hosts[name] = host.isIdle && host.experience == nil && host.allowed == nil ? nil : host
    }

    /// Before there are too many hosts, all that nobody uses are forgotten.
    mutating func makeRoom() {
      if hosts.count >= HostConnections.hostsRemembered { hosts = hosts.filter { !$0.value.isIdle } }
    }
  }

  /// How long an experience is of use, in nanoseconds, and how many hosts are remembered.
  private static let memory = Duration.seconds(600).nanoseconds
  private static let hostsRemembered = 1000

  /// The requests that run at a host at most.
  let limit: Int
  private let now: @Sendable () -> Int64
  private let state = Lock(State())

  init(limit: Int, now: @escaping @Sendable () -> Int64 = { Clocks.boottime() }) {
    self.limit = max(1, limit)
    self.now = now
  }

  // MARK: Connections

  /// Takes a connection to `host` as soon as one is free and it is this caller's turn. Calls `pulse` now and then while
  /// it waits, on `loop`. Throws if the task is canceled meanwhile.
  func connect(
    to host: String, for root: String, isRelay: Bool = false, on loop: EventLoop, pulse: @escaping @Sendable () -> Void
  ) async throws(CancellationError) {
    guard !take(host, for: root, isRelay: isRelay) else { return }
    let waiting = loop.repeating(every: .seconds(10)) { [self] in
      pulse()
      admit(to: host)
    }
    defer { waiting.cancel() }
    try await wait(for: host, for: root, isRelay: isRelay)
  }

  /// Takes a connection to `host` for a transfer of `root`, if one is free and nobody waits for it.
  func take(_ host: String, for root: String, isRelay: Bool = false) -> Bool {
    let now = now()
    let user = User(root: root, isRelay: isRelay)
    let isTaken = state.withLock { $0.hosts[host, default: Host()].take(user, limit: limit, now: now) }
    if isTaken { HostLine.current?.took(host) }
    return isTaken
  }

  /// Takes a connection to `host` as soon as one is free and it is this caller's turn. Throws if the task is canceled
  /// meanwhile.
  func wait(for host: String, for root: String, isRelay: Bool = false) async throws(CancellationError) {
    let user = User(root: root, isRelay: isRelay)
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    HostLine.current?.waits(for: host)
    defer { HostLine.current?.waited() }
    let isTaken = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
        let now = now()
        let answer = state.withLock { state -> Bool? in
          // Canceled before it stood in line, where `cancel` would have found it.
          guard !Task.isCancelled else { return false }
          if state.hosts[host, default: Host()].take(user, limit: limit, now: now) { return true }
          state.hosts[host]?.waiting.append(Waiter(number: number, user: user, continuation: continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      cancel(number, at: host)
    }
    guard isTaken else { throw CancellationError() }
    HostLine.current?.took(host)
  }

  private func cancel(_ number: Int, at host: String) {
    let waiter = state.withLock { state -> Waiter? in
      guard let index = state.hosts[host]?.waiting.firstIndex(where: { $0.number == number }) else { return nil }
      return state.hosts[host]?.waiting.remove(at: index)
    }
    waiter?.continuation.resume(returning: false)
  }

  /// A request with a connection to `host` is sent. Returns its number.
  func sent(to host: String) -> Int {
    let now = now()
    return state.withLock { state in
      state.lastNumber += 1
      let count = (state.hosts[host]?.requests.count ?? 0) + 1
      state.hosts[host]?.requests[state.lastNumber] = Request(sentAt: now, count: count)
      return state.lastNumber
    }
  }

  /// The host sends what a request with a connection asked for, or takes what it sends.
  func served(_ host: String) {
    let now = now()
    state.withLock { state in
      guard var entry = state.hosts[host] else { return }
      entry.served += 1
      entry.noteServed(entry.served, now: now)
      state.hosts[host] = entry
    }
  }

  /// Gives a connection back that was taken. Who waits for one may have it. Returns whether the request was refused
  /// because there was one too many. `number` is that of the request, if one was sent.
  @discardableResult
  func giveBack(
    _ host: String, for root: String, isRelay: Bool = false, after fate: Fate = .other, of number: Int? = nil
  ) -> Bool {
    let now = now()
    let (isSurplus, next) = state.withLock { state -> (Bool, [Waiter]) in
      guard var entry = state.hosts[host] else { return (false, []) }
      var isSurplus = false
      switch fate {
      case .served:
        entry.noteServed(max(entry.served, number.flatMap { entry.requests[$0]?.count } ?? 0), now: now)
        entry.served -= 1
      case .refused:
        isSurplus = entry.refused(number, now: now)
        if isSurplus { state.makeRoom() }
      case .refusedUpload: entry.forget(refused: number)
      case .other: break
      }
      if let number { entry.requests[number] = nil }
      entry.count(User(root: root, isRelay: isRelay), -1)
      let next = entry.admit(limit: limit, now: now)
      state.keep(entry, of: host)
      return (isSurplus, next)
    }
    for waiter in next { waiter.continuation.resume(returning: true) }
    HostLine.current?.gaveBack()
    return isSurplus
  }

  /// Admits those who have room by now. What a host allows also grows while nobody gives a connection back, so those
  /// who wait call this now and then.
  func admit(to host: String) {
    let now = now()
    let next = state.withLock { $0.hosts[host]?.admit(limit: limit, now: now) } ?? []
    for waiter in next { waiter.continuation.resume(returning: true) }
  }

  /// How many wait for a connection to `host`.
  func waiting(for host: String) -> Int { state.withLock { $0.hosts[host]?.waiting.count ?? 0 } }

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

  /// How many connections the transfer may have to `host`: at least one. What an equal division leaves over is for
  /// those that came first.
  func share(of host: String, for transfer: Int) -> Int {
    let now = now()
    return state.withLock { state in
      let transfers = state.hosts[host]?.transfers ?? []
      let limit = min(limit, state.hosts[host]?.allowed(now: now) ?? limit)
      guard transfers.count < limit, let place = transfers.firstIndex(of: transfer) else { return 1 }
      return limit / transfers.count + (place < limit % transfers.count ? 1 : 0)
    }
  }

  // MARK: Experience

  /// What is known of `host`; `nil` if nothing is, or it is too old.
  func experience(of host: String) -> Experience? {
    let now = now()
    return state.withLock { state in
      state.hosts[host]?.experience.flatMap { now - $0.at < Self.memory ? $0.0 : nil }
    }
  }

  /// Remembers what a transfer found out about `host`.
  func learned(_ experience: Experience, of host: String) {
    let now = now()
    state.withLock { state in
      state.makeRoom()
      state.hosts[host, default: Host()].experience = (experience, now)
    }
  }

  /// The requests that run at all hosts.
  var used: Int { state.withLock { $0.hosts.values.reduce(0) { $0 + $1.total } } }

  // MARK: For tests

  /// How many hosts are remembered or in use.
  var remembered: Int { state.withLock { $0.hosts.count } }
}
