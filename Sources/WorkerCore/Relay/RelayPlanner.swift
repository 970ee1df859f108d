import ReelhaulSystem
import TaskCore

/// Decides when a worker tries to lead the relay, how much of the outbox it takes at a time, and when it is done.
///
/// One worker of the fleet relays, so that the events of a task keep their order. The right ends with its term,
/// and like a lease it is used for two thirds of it only, counted from when it was asked for. A round is published
/// before anything of the next one is; where there is more to come, the next one is read meanwhile.
///
/// A leader that was frozen or cut off does not know that its term is over. So a new one shuts it out at the broker,
/// before it reads: what earlier leaders published is then older than all that is read and published from now on.
package struct RelayPlanner: Sendable {
  package enum Decision: Hashable, Sendable {
    /// Ask for the lead; answer with ``led(_:sentAt:now:)``.
    case lead(seconds: Int)
    /// Shut earlier leaders out by then; answer with ``fenced()``.
    case fence(until: BootInstant)
    /// Read a round of up to so many rows; answer with ``read(rows:events:of:isCut:now:)``.
    case read(rows: Int)
    /// Publish the round that was read last by then, and discard its rows; answer with ``published()``. Meanwhile read
    /// up to so many rows that are not among them, and answer with ``read(rows:events:of:isCut:now:)`` after that.
    case publish(readingAhead: Int?, until: BootInstant)
    /// Ask which rows wait; answer with ``looked(_:now:)``.
    case look
    case wait(until: BootInstant)
    /// The worker may go.
    case end
  }

  /// Seconds that the lead is asked for.
  package static let term = 6
  /// How much of the term is used.
  package static let usable = Duration.seconds(term) * 2 / 3
  /// A follower asks for the lead at least this often.
  private static let followerTries = Duration.seconds(1)
  /// Events that one round aims at: enough to fill batches, little enough to hold in memory.
  package static let eventsPerRound = 8000
  private static let mostRows = 200
  /// A leader that keeps up lets events gather, the longer the more there are: those of one task then share its document.
  package static func gathering(after events: Int) -> Duration {
    .milliseconds(20) + .milliseconds(130) * min(Double(events) / 1000, 1)
  }

  private enum Role {
    case follower(nextTry: BootInstant)
    /// `renewAt` lies halfway to `until`, after which nothing may be published.
    case leader(renewAt: BootInstant, until: BootInstant, hasFenced: Bool)
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
  private var emptyUntil: BootInstant?
  private var gathersUntil: BootInstant?
  private var failedUntil: BootInstant?
  private var eventsPerRow = 40.0
  /// What one round aims at now: less after one that did not arrive in time.
  private var events = Self.eventsPerRound
  private var empty: Backoff
  private var failures: Backoff
  private var random: SplitMix64

  package init(now: BootInstant, seed: UInt64) {
    role = .follower(nextTry: now)
    empty = Backoff(base: .milliseconds(5), limit: .milliseconds(200), seed: seed)
    failures = Backoff(base: .milliseconds(5), limit: .seconds(1), seed: seed &+ 1)
    random = SplitMix64(seed: seed &+ 2)
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
    case .leader(let renewAt, let until, let hasFenced):
      if let failedUntil, now < failedUntil { return .wait(until: failedUntil) }
      if now >= renewAt { return .lead(seconds: Self.term) }
      let until = min(until, drain?.until ?? until)
      if hasRound { return .publish(readingAhead: isBehind && !isCut ? rows : nil, until: until) }
      if case .wait(let pause)? = pause(now) { return .wait(until: min(pause, renewAt)) }
      return hasFenced ? .read(rows: rows) : .fence(until: until)
    }
  }

  private func pause(_ now: BootInstant) -> Decision? {
    let until = max(emptyUntil ?? now, gathersUntil ?? now, failedUntil ?? now)
    return now < until ? .wait(until: until) : nil
  }

  /// Rows that hold a round's events, as far as the last ones tell.
  private var rows: Int {
    min(max(Int(Double(events) / max(eventsPerRow, 1)), 1), Self.mostRows)
  }

  package mutating func led(_ leads: Bool, sentAt: BootInstant, now: BootInstant) {
    // What was read under a term that is over may have been published by another worker since.
    var goesOn = false
    if case .leader(_, let until, let hasFenced) = role { goesOn = hasFenced && leads && now < until }
    hasRound = hasRound && goesOn
    let until = sentAt + Self.usable
    if leads && now < until {
      role = .leader(renewAt: sentAt + Self.usable / 2, until: until, hasFenced: goesOn)
    } else {
      follow(from: now)
    }
  }

  /// Tries again after `time`, or soon where it drains.
  private mutating func follow(from time: BootInstant) {
    let wait = drain == nil ? Self.followerTries * Double.random(in: 0.5...1, using: &random) : empty.next()
    role = .follower(nextTry: time + wait)
    drain?.mustLook = true
  }

  /// Nothing of earlier leaders arrives from now on.
  package mutating func fenced() {
    if case .leader(let renewAt, let until, _) = role {
      role = .leader(renewAt: renewAt, until: until, hasFenced: true)
    }
  }

  /// A round of `rows` with `events` was read, of at most `limit` rows; of the last one not all, where it `isCut`.
  package mutating func read(rows: Int, events: Int, of limit: Int, isCut: Bool = false, now: BootInstant) {
    guard rows > 0 else {
      isBehind = false
      drain?.mustLook = true
      emptyUntil = now + empty.next()
      failures.reset()
      return
    }
    hasRound = true
    self.isCut = isCut
    isBehind = isCut || rows >= limit || events >= self.events
    empty.reset()
    emptyUntil = nil
    gathersUntil = isBehind || drain != nil ? nil : now + Self.gathering(after: events)
    let seen = Double(events) / Double(rows)
    // Rising at once bounds memory, falling slowly keeps the rounds large.
    eventsPerRow = seen > eventsPerRow ? seen : eventsPerRow + (seen - eventsPerRow) / 4
  }

  /// The round is acknowledged, its rows are gone.
  package mutating func published() {
    hasRound = false
    failures.reset()
    events = min(2 * events, Self.eventsPerRound)
    drain?.mustLook = true
  }

  /// The store or the broker failed; the rows stay and are relayed again. `isShutOut`: nothing more is taken from this
  /// worker before it has fenced again.
  ///
  /// A leader that is shut out, or cannot fence, may be cut off from the broker alone: it leaves the lead to whoever asks
  /// next.
  package mutating func failed(now: BootInstant, isShutOut: Bool = false) {
    if hasRound { events = max(events / 2, 1) }
    hasRound = false
    let wait = now + failures.next()
    failedUntil = wait
    switch role {
    case .follower: role = .follower(nextTry: wait)
    case .leader(_, let until, let hasFenced):
      guard isShutOut || !hasFenced else { return }
      let end = until - Self.usable + .seconds(Self.term)
      follow(from: drain == nil ? end + Self.followerTries : now)
    }
  }

  /// Events were written: look at once, unless that failed just now.
  package mutating func hint() {
    emptyUntil = nil
  }

  /// The worker ends, its last events are written. They are published before it goes, by itself or whoever leads: by
  /// then or at `until` the decision is ``Decision/end``.
  package mutating func drain(until: BootInstant, now: BootInstant) {
    drain = Drain(until: until)
    (emptyUntil, gathersUntil) = (nil, nil)
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
