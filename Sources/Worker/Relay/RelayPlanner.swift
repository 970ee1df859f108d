import TaskCore

/// Decides when a worker tries to lead the relay, how much of the outbox it takes at a time, and when it is done.
///
/// One worker of the fleet relays, so that the events of a task keep their order. The right ends with its term,
/// and like a lease it is used for two thirds of it only, counted from when it was asked for. A round is published
/// before anything of the next one is; where there is more to come, the next one is read meanwhile.
package struct RelayPlanner: Sendable {
  package enum Decision: Hashable, Sendable {
    /// Ask for the lead; answer with ``led(_:sentAt:now:)``.
    case lead(seconds: Int)
    /// Read a round of up to so many rows; answer with ``read(rows:events:of:isCut:now:)``.
    case read(rows: Int)
    /// Publish the round that was read last, then discard its rows; answer with ``published()``. Meanwhile read up to
    /// so many rows that are not among them, and answer with ``read(rows:events:of:isCut:now:)`` after that.
    case publish(readingAhead: Int?)
    /// Ask which rows wait; answer with ``looked(_:now:)``.
    case look
    case wait(until: BootInstant)
    /// The worker may go.
    case end
  }

  /// Seconds that the lead is asked for.
  package static let term = 6
  /// Events that one round aims at: enough to fill batches, little enough to hold in memory.
  package static let eventsPerRound = 4000
  private static let mostRows = 200
  /// A leader that keeps up lets events gather for so long: those of one task then share its document.
  package static let gathering = Duration.milliseconds(20)

  private enum Role {
    case follower(nextTry: BootInstant)
    /// `renewAt` lies halfway to `until`, after which nothing may be published.
    case leader(renewAt: BootInstant, until: BootInstant)
  }

  /// A worker that drains stays until the events are published that were written when it began to.
  private struct Drain {
    var until: BootInstant
    /// The highest row there was; none of its own comes later.
    var last: Int64?
    var mustLook = true
    var isDone = false
  }

  private var role: Role
  private var drain: Drain?
  /// A round is read and not yet published.
  private var hasRound = false
  /// The last read ended at its limit: there is more.
  private var isBehind = false
  /// It ended within a row, which must be read again before what comes after it.
  private var isCut = false
  private var notBefore: BootInstant?
  private var gathersUntil: BootInstant?
  private var eventsPerRow = 20.0
  private var empty: Backoff
  private var random: SplitMix64

  package init(now: BootInstant, seed: UInt64) {
    role = .follower(nextTry: now)
    empty = Backoff(base: .milliseconds(5), limit: .milliseconds(200), seed: seed)
    random = SplitMix64(seed: seed &+ 1)
  }

  package func next(now: BootInstant) -> Decision {
    guard let drain else { return work(now) }
    if drain.isDone || now >= drain.until { return .end }
    var decision = work(now)
    if drain.mustLook, !hasRound { decision = pause(now) ?? .look }
    if case .wait(let until) = decision { return .wait(until: min(until, drain.until)) }
    return decision
  }

  private func work(_ now: BootInstant) -> Decision {
    switch role {
    case .follower(let nextTry):
      return now < nextTry ? .wait(until: nextTry) : .lead(seconds: Self.term)
    case .leader(let renewAt, _):
      if now >= renewAt { return .lead(seconds: Self.term) }
      if hasRound { return .publish(readingAhead: isBehind && !isCut ? rows : nil) }
      guard case .wait(let until)? = pause(now) else { return .read(rows: rows) }
      return .wait(until: min(until, renewAt))
    }
  }

  private func pause(_ now: BootInstant) -> Decision? {
    let until = max(notBefore ?? now, gathersUntil ?? now)
    return now < until ? .wait(until: until) : nil
  }

  /// Rows that hold a round's events, as far as the last ones tell.
  private var rows: Int {
    min(max(Int(Double(Self.eventsPerRound) / max(eventsPerRow, 1)), 1), Self.mostRows)
  }

  package mutating func led(_ leads: Bool, sentAt: BootInstant, now: BootInstant) {
    // What was read under a term that is over may have been published by another worker since.
    if case .leader(_, let until) = role { hasRound = hasRound && leads && now < until }
    let until = sentAt + .seconds(Self.term) * 2 / 3
    if leads && now < until {
      role = .leader(renewAt: sentAt + .seconds(Self.term) / 3, until: until)
    } else {
      let wait = drain == nil ? .seconds(1) * Double.random(in: 0.5...1, using: &random) : empty.next()
      role = .follower(nextTry: now + wait)
      drain?.mustLook = true
    }
  }

  /// A round of `rows` with `events` was read, of at most `limit` rows; of the last one not all, where it `isCut`.
  package mutating func read(rows: Int, events: Int, of limit: Int, isCut: Bool = false, now: BootInstant) {
    guard rows > 0 else {
      isBehind = false
      drain?.mustLook = true
      notBefore = now + empty.next()
      return
    }
    hasRound = true
    self.isCut = isCut
    isBehind = isCut || rows >= limit || events >= Self.eventsPerRound
    empty.reset()
    notBefore = nil
    gathersUntil = isBehind || drain != nil ? nil : now + Self.gathering
    let seen = Double(events) / Double(rows)
    // Rising at once bounds memory, falling slowly keeps the rounds large.
    eventsPerRow = seen > eventsPerRow ? seen : eventsPerRow + (seen - eventsPerRow) / 4
  }

  /// The round is acknowledged, its rows are gone.
  package mutating func published() {
    hasRound = false
    drain?.mustLook = true
  }

  /// The store or the broker failed; the rows stay and are relayed again.
  package mutating func failed(now: BootInstant) {
    hasRound = false
    let wait = now + empty.next()
    notBefore = wait
    if case .follower = role { role = .follower(nextTry: wait) }
  }

  /// Events were written: look at once.
  package mutating func hint() {
    notBefore = nil
  }

  /// The worker ends, its last events are written. They are published before it goes, by itself or whoever leads: by
  /// then or at `until` the decision is ``Decision/end``.
  package mutating func drain(until: BootInstant, now: BootInstant) {
    drain = Drain(until: until)
    (notBefore, gathersUntil) = (nil, nil)
    if case .follower = role { role = .follower(nextTry: now) }
  }

  /// `rows`: the lowest and the highest row that wait, nil where none does.
  package mutating func looked(_ rows: ClosedRange<Int64>?) {
    guard var drain else { return }
    let last = drain.last ?? rows?.upperBound
    drain.last = last
    drain.mustLook = false
    drain.isDone = rows.map { $0.lowerBound > last ?? $0.upperBound } ?? true
    self.drain = drain
  }
}
