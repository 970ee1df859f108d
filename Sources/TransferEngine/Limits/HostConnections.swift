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

  /// Requests that run.
  fileprivate struct Use {
    var relays = 0
    var others = 0

    var total: Int { relays + others }
  }

  fileprivate struct Host {
    /// By storage root.
    var used: [String: Use] = [:]
    /// The numbers of the transfers that use the host, those that came first in front.
    var transfers: [Int] = []
    var waiting: [Waiter] = []
    /// The requests on their way or answered, by number.
    var requests: [Int: Request] = [:]
    /// The requests that the host serves now, and the most at once of late.
    var served = 0
    var mostServed: (count: Int, at: Int64) = (0, 0)
    /// What the last refusal has left.
    var allowed: (count: Int, at: Int64)?
    var experience: (Experience, at: Int64)?

    var isIdle: Bool { used.isEmpty && transfers.isEmpty && waiting.isEmpty }

    var total: Int { used.values.reduce(0) { $0 + $1.total } }

    /// How many the host allows, as far as is known.
    func allowed(now: Int64) -> Int {
      allowed.map { $0.count + Int((now - $0.at) / HostConnections.trialInterval) } ?? .max
    }

    func hasRoom(for user: User, limit: Int, now: Int64) -> Bool {
      let (own, total, allowed) = (used[user.root] ?? Use(), total, allowed(now: now))
      guard user.isRelay else {
        return (own.others == 0 || total < limit) && (total < allowed || used.values.allSatisfy { $0.others == 0 })
      }
      let half = max(1, min(limit, allowed) / 2)
      return total < allowed && (own.total == 0 || total < limit && used.values.reduce(0) { $0 + $1.relays } < half)
    }

    /// Unless there is no room, or it is another's turn.
    mutating func take(_ user: User, limit: Int, now: Int64) -> Bool {
      func hasRoom(_ user: User) -> Bool { self.hasRoom(for: user, limit: limit, now: now) }
      guard hasRoom(user), !waiting.contains(where: { hasRoom($0.user) }) else { return false }
      count(user, 1)
      return true
    }

    mutating func count(_ user: User, _ change: Int) {
      var own = used[user.root] ?? Use()
      if user.isRelay { own.relays += change } else { own.others += change }
      used[user.root] = own.total == 0 ? nil : own
    }

    /// Those who wait and have room now, in their order: they have a connection from now on.
    mutating func admit(limit: Int, now: Int64) -> [Waiter] {
      var admitted: [Waiter] = []
      while let index = waiting.firstIndex(where: { hasRoom(for: $0.user, limit: limit, now: now) }) {
        count(waiting[index].user, 1)
        admitted.append(waiting.remove(at: index))
      }
      return admitted
    }

    /// The most requests that the host served at once of late.
    func mostServed(now: Int64) -> Int {
      now - mostServed.at < HostConnections.recent ? max(served, mostServed.count) : served
    }

    mutating func noteServed(_ count: Int, now: Int64) {
      if count >= mostServed(now: now) { mostServed = (count, now) }
    }

    /// A request was refused. Returns whether it was one too many. The reason is another if the host serves no request,
    /// or served as many a moment ago: a URL that is always refused must fail, and must not take the host from others.
    mutating func refused(_ number: Int?, now: Int64) -> Bool {
      let refused = forget(refused: number)
      let total = total
      guard served > 0 || isWorking(beside: refused, now: now), total > mostServed(now: now) else { return false }
      allowed = (max(1, total - 1), now)
      return true
    }

    /// The host took the later ones without this one.
    @discardableResult
    mutating func forget(refused number: Int?) -> Request? {
      guard let number else { return nil }
      for (other, request) in requests where other > number { requests[other]?.count = request.count - 1 }
      return requests.removeValue(forKey: number)
    }

    /// Whether the host works on a request, of which nothing has come yet: it would have refused it by now, as the other.
    private func isWorking(beside refused: Request?, now: Int64) -> Bool {
      guard let refused else { return false }
      let patience = now - refused.sentAt + HostConnections.refusalTime
      return requests.values.contains { now - $0.sentAt >= patience }
    }
  }

  fileprivate struct Request {
    let sentAt: Int64
    /// The requests that were on their way or answered when it was sent, itself included, without those that the host has
    /// refused since.
    var count: Int
  }

  /// Whose request it is.
  fileprivate struct User {
    let root: String
    let isRelay: Bool
  }

  fileprivate struct Waiter {
    let number: Int
    let user: User
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
  fileprivate static let hostsRemembered = 1000
  /// After so long without a refusal, one connection more than the host allowed is tried.
  fileprivate static let trialInterval = Duration.seconds(30).nanoseconds
  /// A host that takes so much longer with a request than with one that it refused works on it.
  fileprivate static let refusalTime = Duration.milliseconds(100).nanoseconds
  /// What a host served at once so long ago, it is taken to serve now.
  fileprivate static let recent = Duration.seconds(10).nanoseconds

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
    if isTaken { HostLine.current?.took() }
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
    HostLine.current?.waits()
    defer { HostLine.current?.waited() }
    let isTaken = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
        let now = now()
        let answer = state.withLock { state -> Bool? in
          if state.canceled.remove(number) != nil { return false }
          if state.hosts[host, default: Host()].take(user, limit: limit, now: now) { return true }
          state.hosts[host]?.waiting.append(Waiter(number: number, user: user, continuation: continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      cancel(number, at: host)
    }
    state.withLock { _ = $0.canceled.remove(number) }
    guard isTaken else { throw CancellationError() }
    HostLine.current?.took()
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

extension HostConnections.State {
  /// Forgets a host that nobody uses, unless something was learned of it.
  fileprivate mutating func keep(_ host: HostConnections.Host, of name: String) {
    hosts[name] = host.isIdle && host.experience == nil && host.allowed == nil ? nil : host
  }

  /// Before there are too many hosts, all that nobody uses are forgotten.
  fileprivate mutating func makeRoom() {
    if hosts.count >= HostConnections.hostsRemembered { hosts = hosts.filter { !$0.value.isIdle } }
  }
}
