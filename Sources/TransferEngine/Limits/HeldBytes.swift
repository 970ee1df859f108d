import ReelhaulSystem

/// The bytes that all uploads of a process hold in memory, because a checksum must be sent before them or because they
/// cannot be read again: never more than the limit, whatever the number of uploads, unless single portions are larger than a
/// quarter of it. At most four of those are held at once.
///
/// Who comes first has them first. But one host, which may be slow or not answer at all, gets no more than half of what
/// the others leave: whatever it keeps, there is something for the next one. Each storage root holds its own for a host,
/// because a root that does not answer gives nothing back.
///
/// Relays, whose bytes are read from a server, count as another host of their own: they keep theirs for as long as their
/// source takes, and others of the host need not wait for that. A host and its relays leave a quarter of the limit, so that
/// is what a portion counts as at most.
///
/// The threads of all loops may call it.
final class HeldBytes: Sendable {
  /// Bytes that may be held as long as this object is there.
  final class Portion: Sendable {
    private let owner: HeldBytes
    private let host: String
    private let bytes: Lock<Int64>

    fileprivate init(_ count: Int64, of owner: HeldBytes, for host: String) {
      self.owner = owner
      self.host = host
      bytes = Lock(count)
    }

    deinit { owner.giveBack(count, for: host) }

    var count: Int64 { bytes.withLock { $0 } }

    /// Gives back all but so many.
    func shrink(to count: Int64) {
      let rest = bytes.withLock { bytes in
        defer { bytes = min(bytes, count) }
        return max(0, bytes - count)
      }
      owner.giveBack(rest, for: host)
    }
  }

  private struct Waiter {
    let number: Int
    let count: Int64
    /// Nil for one that does not wait.
    let continuation: UnsafeContinuation<Bool, Never>?
  }

  private struct Host {
    var held: Int64 = 0
    var waiting: [Waiter] = []
  }

  private struct State {
    let limit: Int64
    var held: Int64 = 0
    var hosts: [String: Host] = [:]
    var lastNumber = 0

    mutating func number() -> Int {
      lastNumber += 1
      return lastNumber
    }

    /// Whether the first that waits for a host may have its bytes as soon as there are so many. One is always allowed.
    func isNext(_ host: Host) -> Bool {
      guard let first = host.waiting.first else { return false }
      return host.held == 0 || host.held + first.count <= (limit - (held - host.held)) / 2
    }

    /// Those who get their bytes now, in their order. Nobody passes by one that waits for others to give theirs back.
    mutating func admit() -> [Waiter] {
      var admitted: [Waiter] = []
      while let (name, host) = hosts.filter({ isNext($0.value) }).min(by: {
        $0.value.waiting[0].number < $1.value.waiting[0].number
      }), held + host.waiting[0].count <= limit {
        var host = host
        let first = host.waiting.removeFirst()
        host.held += first.count
        held += first.count
        hosts[name] = host
        admitted.append(first)
      }
      return admitted
    }

    mutating func remove(_ number: Int, at host: String) -> Waiter? {
      guard let index = hosts[host]?.waiting.firstIndex(where: { $0.number == number }) else { return nil }
      defer { forget(host) }
      return hosts[host]?.waiting.remove(at: index)
    }

    mutating func giveBack(_ count: Int64, for host: String) {
      held -= count
      hosts[host]?.held -= count
      forget(host)
    }

    private mutating func forget(_ name: String) {
      if let host = hosts[name], host.held == 0, host.waiting.isEmpty { hosts[name] = nil }
    }
  }

  static let standardLimit: Int64 = 256 << 20
  private let limit: Int64
  private let state: Lock<State>

  init(limit: Int64 = standardLimit) {
    self.limit = limit
    state = Lock(State(limit: limit))
  }

  /// Runs `body` once `count` bytes may be held in the name of `holder`, which then are until it ends. A run that waits for
  /// that stands in line for `host`, which is the holder unless told otherwise. Throws `CancellationError` if the task is
  /// canceled while it waits.
  func holding<Result>(
    _ count: Int64, for holder: String, inLineFor host: String? = nil, _ body: () async throws -> Result
  ) async throws -> Result {
    let portion: Portion
    do {
      HostLine.current?.waits(for: host ?? holder)
      defer { HostLine.current?.waited() }
      portion = try await take(count, for: holder)
    }
    defer { withExtendedLifetime(portion) {} }
    return try await body()
  }

  /// In whose name relays to `host` hold their bytes.
  static func relays(to host: String) -> String { "relays to \(host)" }

  /// Runs `body` with a part of `source`, of the storage root `root`, which is held until then.
  func holding<Result>(
    _ range: Range<Int64>, of source: any UploadSource, in root: String, for host: String,
    _ body: (ArraySlice<UInt8>) async throws -> Result
  ) async throws -> Result {
    guard !source.isHeld else { return try await body(source.read(range)) }
    let holder = source.needsConnections ? Self.relays(to: host) : "\(root) to \(host)"
    return try await holding(Int64(source.whole(range).count), for: holder, inLineFor: host) {
      try await body(source.read(range))
    }
  }

  /// Like ``holding(_:for:inLineFor:_:)``, until the portion is released.
  func take(_ count: Int64, for host: String) async throws(CancellationError) -> Portion {
    let count = min(count, limit / 4)
    let number = state.withLock { $0.number() }
    let isTaken = await withTaskCancellationHandler {
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
        let next = state.withLock { state -> [Waiter]? in
          // Canceled before it stood in line, where `cancel` would have found it.
          guard !Task.isCancelled else { return nil }
          let waiter = Waiter(number: number, count: count, continuation: continuation)
          state.hosts[host, default: Host()].waiting.append(waiter)
          return state.admit()
        }
        guard let next else { return continuation.resume(returning: false) }
        resume(next)
      }
    } onCancel: {
      cancel(number, at: host)
    }
    guard isTaken else { throw CancellationError() }
    return Portion(count, of: self, for: host)
  }

  /// A portion that can be had without waiting.
  func takeNow(_ count: Int64, for host: String) -> Portion? {
    let count = min(count, limit / 4)
    let isTaken = state.withLock { state in
      let number = state.number()
      state.hosts[host, default: Host()].waiting.append(Waiter(number: number, count: count, continuation: nil))
      // All others have been asked before.
      _ = state.admit()
      return state.remove(number, at: host) == nil
    }
    return isTaken ? Portion(count, of: self, for: host) : nil
  }

  private func cancel(_ number: Int, at host: String) {
    let (waiter, next) = state.withLock { state -> (Waiter?, [Waiter]) in
      guard let waiter = state.remove(number, at: host) else { return (nil, []) }
      // Behind one that wanted much there may be others that want less.
      return (waiter, state.admit())
    }
    waiter?.continuation?.resume(returning: false)
    resume(next)
  }

  private func giveBack(_ count: Int64, for host: String) {
    resume(
      state.withLock { state in
        state.giveBack(count, for: host)
        return state.admit()
      })
  }

  private func resume(_ admitted: [Waiter]) {
    for waiter in admitted { waiter.continuation?.resume(returning: true) }
  }

  // MARK: For tests

  var held: Int64 { state.withLock { $0.held } }
  var waiting: Int { state.withLock { $0.hosts.values.reduce(0) { $0 + $1.waiting.count } } }
}
