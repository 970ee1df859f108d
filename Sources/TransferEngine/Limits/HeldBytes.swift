import ReelhaulSystem

/// The bytes that all uploads of a process hold in memory, because a checksum must be sent before them or because they
/// cannot be read again: never more than the limit, whatever the number of uploads, unless single portions are larger than a
/// quarter of it. At most four of those are held at once.
///
/// Who comes first has them first. But one server, which may be slow or not answer at all, gets no more than three
/// quarters of what the others leave, but for a first portion: whatever it keeps, there is something for the next one.
/// Each storage root holds its own for a server, because a root that does not answer gives nothing back, and so do
/// relays, whose bytes are read from a server: they keep theirs for as long as their source takes. One such holder gets
/// no more than half of what the others leave, but its first portion as soon as there are so many; and one root, where
/// its servers have some, no more than three quarters of what other roots leave, or seven eighths where there are only
/// relays beside it. A portion counts as a quarter of the limit at most.
///
/// The threads of all loops may call it.
final class HeldBytes: Sendable {
  /// In whose name bytes are held.
  struct Holder: Hashable, Sendable {
    /// The server (host:port) that they are sent to.
    let server: String
    /// The storage root that they are of; nil for relays.
    let root: String?

    static func relays(to server: String) -> Self { Self(server: server, root: nil) }
  }

  /// Bytes that may be held as long as this object is there.
  final class Portion: Sendable {
    private let owner: HeldBytes
    private let holder: Holder
    private let bytes: Lock<Int64>

    fileprivate init(_ count: Int64, of owner: HeldBytes, for holder: Holder) {
      self.owner = owner
      self.holder = holder
      bytes = Lock(count)
    }

    deinit { owner.giveBack(count, for: holder) }

    var count: Int64 { bytes.withLock { $0 } }

    /// Gives back all but so many.
    func shrink(to count: Int64) {
      let rest = bytes.withLock { bytes in
        defer { bytes = min(bytes, count) }
        return max(0, bytes - count)
      }
      owner.giveBack(rest, for: holder)
    }
  }

  private struct Waiter {
    let number: Int
    let count: Int64
    /// Nil for one that does not wait.
    let continuation: UnsafeContinuation<Bool, Never>?
  }

  private struct Share {
    var held: Int64 = 0
    var waiting: [Waiter] = []
  }

  private struct State {
    let limit: Int64
    let hasSeveralRoots: Bool
    var held: Int64 = 0
    var shares: [Holder: Share] = [:]
    /// What all holders have of the server's bytes.
    var servers: [String: Int64] = [:]
    /// What a root's holders have for all servers.
    var roots: [String: Int64] = [:]
    var lastNumber = 0

    mutating func number() -> Int {
      lastNumber += 1
      return lastNumber
    }

    /// Whether the first in a holder's line may have its bytes as soon as there are so many. One of a server is always
    /// allowed, and one of a holder as long as its server leaves a quarter of the limit: others of the server may keep
    /// theirs for ever.
    func isNext(_ holder: Holder, _ share: Share) -> Bool {
      guard let first = share.waiting.first else { return false }
      let server = servers[holder.server] ?? 0
      let room = share.held == 0 ? limit : limit - (held - server)
      guard server == 0 || server + first.count <= room / 4 * 3 else { return false }
      let root = holder.root.flatMap { roots[$0] } ?? 0
      let most = (limit - (held - root)) / 8 * (hasSeveralRoots ? 6 : 7)
      guard server == 0 || root == 0 || root + first.count <= most else { return false }
      return share.held == 0 || share.held + first.count <= (limit - (held - share.held)) / 2
    }

    /// Those who get their bytes now, in their order. Nobody passes by one that waits for others to give theirs back.
    mutating func admit() -> [Waiter] {
      var admitted: [Waiter] = []
      while let (holder, share) = shares.filter({ isNext($0.key, $0.value) }).min(by: {
        $0.value.waiting[0].number < $1.value.waiting[0].number
      }), held + share.waiting[0].count <= limit {
        let first = share.waiting[0]
        shares[holder]?.waiting.removeFirst()
        add(first.count, for: holder)
        admitted.append(first)
      }
      return admitted
    }

    mutating func remove(_ number: Int, at holder: Holder) -> Waiter? {
      guard let index = shares[holder]?.waiting.firstIndex(where: { $0.number == number }) else { return nil }
      defer { add(0, for: holder) }
      return shares[holder]?.waiting.remove(at: index)
    }

    /// Counts what a holder holds more, or less. Forgets one that holds nothing and does not wait.
    mutating func add(_ count: Int64, for holder: Holder) {
      held += count
      shares[holder]?.held += count
      if let share = shares[holder], share.held == 0, share.waiting.isEmpty { shares[holder] = nil }
      Self.add(count, to: &servers[holder.server])
      if let root = holder.root { Self.add(count, to: &roots[root]) }
    }

    private static func add(_ count: Int64, to sum: inout Int64?) {
      let new = (sum ?? 0) + count
      sum = new == 0 ? nil : new
    }
  }

  static let standardLimit: Int64 = 256 << 20
  private let limit: Int64
  private let state: Lock<State>

  /// - Parameter hasSeveralRoots: Otherwise only relays may wait for what a root keeps.
  init(limit: Int64 = standardLimit, hasSeveralRoots: Bool = true) {
    self.limit = limit
    state = Lock(State(limit: limit, hasSeveralRoots: hasSeveralRoots))
  }

  /// Runs `body` once `count` bytes may be held in the name of `holder`, which then are until it ends. A run that waits for
  /// that stands in line for the server. Throws `CancellationError` if the task is canceled while it waits.
  func holding<Result>(
    _ count: Int64, for holder: Holder, _ body: () async throws -> Result
  ) async throws -> Result {
    let portion: Portion
    do {
      HostLine.current?.waits(for: holder.server)
      defer { HostLine.current?.waited() }
      portion = try await take(count, for: holder)
    }
    defer { withExtendedLifetime(portion) {} }
    return try await body()
  }

  /// Runs `body` with a part of `source`, of the storage root `root`, which is held until then.
  func holding<Result>(
    _ range: Range<Int64>, of source: any UploadSource, in root: String, for server: String,
    _ body: (ArraySlice<UInt8>) async throws -> Result
  ) async throws -> Result {
    guard !source.isHeld else { return try await body(source.read(range)) }
    let holder = Holder(server: server, root: source.needsConnections ? nil : root)
    return try await holding(Int64(source.whole(range).count), for: holder) {
      try await body(source.read(range))
    }
  }

  /// Like ``holding(_:for:_:)``, until the portion is released.
  func take(_ count: Int64, for holder: Holder) async throws(CancellationError) -> Portion {
    let count = min(count, limit / 4)
    let number = state.withLock { $0.number() }
    let isTaken = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
        let next = state.withLock { state -> [Waiter]? in
          // Canceled before it stood in line, where `cancel` would have found it.
          guard !Task.isCancelled else { return nil }
          let waiter = Waiter(number: number, count: count, continuation: continuation)
          state.shares[holder, default: Share()].waiting.append(waiter)
          return state.admit()
        }
        guard let next else { return continuation.resume(returning: false) }
        resume(next)
      }
    } onCancel: {
      cancel(number, at: holder)
    }
    guard isTaken else { throw CancellationError() }
    return Portion(count, of: self, for: holder)
  }

  /// A portion that can be had without waiting.
  func takeNow(_ count: Int64, for holder: Holder) -> Portion? {
    let count = min(count, limit / 4)
    let isTaken = state.withLock { state in
      let number = state.number()
      state.shares[holder, default: Share()].waiting.append(Waiter(number: number, count: count, continuation: nil))
      // All others have been asked before.
      _ = state.admit()
      return state.remove(number, at: holder) == nil
    }
    return isTaken ? Portion(count, of: self, for: holder) : nil
  }

  private func cancel(_ number: Int, at holder: Holder) {
    let (waiter, next) = state.withLock { state -> (Waiter?, [Waiter]) in
      guard let waiter = state.remove(number, at: holder) else { return (nil, []) }
      // Behind one that wanted much there may be others that want less.
      return (waiter, state.admit())
    }
    waiter?.continuation?.resume(returning: false)
    resume(next)
  }

  private func giveBack(_ count: Int64, for holder: Holder) {
    resume(
      state.withLock { state in
        state.add(-count, for: holder)
        return state.admit()
      })
  }

  private func resume(_ admitted: [Waiter]) {
    for waiter in admitted { waiter.continuation?.resume(returning: true) }
  }

  // MARK: For tests

  var held: Int64 { state.withLock { $0.held } }
  var waiting: Int { state.withLock { $0.shares.values.reduce(0) { $0 + $1.waiting.count } } }
}
