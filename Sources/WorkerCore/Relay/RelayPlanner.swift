import ReelhaulSystem
import TaskCore

/// Decides when a worker tries to lead the relay, how much of the outbox it reads at a time, and when it is done.
///
/// One worker of the fleet relays, so that the events of a task keep their order. The lead ends with its term. Like a
/// lease, it is used only for two thirds of the term, counted from the request. A round is published before any part
/// of the next one. If there is more, the next round is read meanwhile.
///
/// A leader that was frozen or cut off does not know that its term is over. So a new leader fences it at the broker
/// before it reads. Messages of earlier leaders are then older than everything that is read and published from now on.
package struct RelayPlanner: Sendable {
  package enum Decision: Hashable, Sendable {
    /// Ask for the lead; answer with ``led(_:sentAt:now:)``.
    case lead(seconds: Int)
    /// Fence earlier leaders by this time; answer with ``fenced()``.
    case fence(until: BootInstant)
    /// Read a round of at most `rows` rows; answer with ``read(rows:events:of:isCut:hasMore:now:)``.
    case read(rows: Int)
    /// Publish the round that was read last by this time, and discard its rows; answer with ``published()``. Meanwhile
    /// read up to `readingAhead` rows that are not among them, and answer with ``read(rows:events:of:isCut:hasMore:now:)``
    /// after that.
    case publish(readingAhead: Int?, until: BootInstant)
    /// Ask which rows wait; answer with ``looked(_:)``.
    case look
    case wait(until: BootInstant)
    /// The relay is done, so the worker may end.
    case end
  }

  /// The seconds for which the lead is requested.
  package static let term = 6
  /// The part of the term that is used.
  package static let usable = Duration.seconds(term) * 2 / 3
  /// A follower asks for the lead at least this often.
  package var followerTries = Duration.seconds(1)
  /// The number of events in a round: enough to fill batches, and few enough to hold in memory.
  package static let eventsPerRound = 8000
  private static let mostRows = 200
  /// A leader that keeps up lets events gather, longer the more there are, because events of one task then share its
  /// document.
  package static func gathering(after events: Int) -> Duration {
    .milliseconds(20) + .milliseconds(130) * min(Double(events) / 250, 1)
  }

  private enum Role {
    case follower(nextTry: BootInstant)
    /// `renewAt` lies halfway to `until`, after which nothing may be published.
    case leader(renewAt: BootInstant, until: BootInstant, hasFenced: Bool)
  }

  /// A draining worker stays until the events are published that existed when the drain began.
  private struct Drain {
    var until: BootInstant
    /// The highest row at that time. None of this worker's rows comes later.
    var last: Int64?
    var mustLook = true
    var isDone = false
  }

  private var role: Role
  private var drain: Drain?
  /// A round has been read and is not published yet.
  private var hasRound = false
  /// The last read ended at its limit, so there is more.
  private var isBehind = false
  /// The last read ended within a row, which must be read again before later rows.
  private var isCut = false
  private var emptyUntil: BootInstant?
  private var gathersUntil: BootInstant?
  private var failedUntil: BootInstant?
  private var eventsPerRow = 40.0
  /// The present number of events in a round. It is smaller after a round that did not arrive in time.
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

  /// The number of rows for a round's events, as estimated from earlier rounds.
  private var rows: Int {
    min(max(Int(Double(events) / max(eventsPerRow, 1)), 1), Self.mostRows)
  }

  /// The size of a round's specifications and outputs. A row, which is what one statement has told, may be too long for a
  /// round that does not arrive in time.
  package var bytes: Int { max(Self.mostBytes * events / Self.eventsPerRound, 1) }
  package static let mostBytes = 3 << 20

  package mutating func led(_ leads: Bool, sentAt: BootInstant, now: BootInstant) {
    // Another worker may have published this round since it was read, because the term was over.
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

  /// Asks again after `time`, or soon during a drain.
  private mutating func follow(from time: BootInstant) {
    let wait = drain == nil ? followerTries * Double.random(in: 0.5...1, using: &random) : empty.next()
    role = .follower(nextTry: time + wait)
    drain?.mustLook = true
  }

  /// From now on no message of earlier leaders arrives.
  package mutating func fenced() {
    if case .leader(let renewAt, let until, _) = role {
      role = .leader(renewAt: renewAt, until: until, hasFenced: true)
    }
  }

  /// A round of `rows` rows with `events` events was read, of at most `limit` rows. `isCut`: the last row was not read
  /// completely. `hasMore`: other events were left out, because this round is full without them.
  package mutating func read(
    rows: Int, events: Int, of limit: Int, isCut: Bool = false, hasMore: Bool = false, now: BootInstant
  ) {
    guard rows > 0 else {
      isBehind = false
      drain?.mustLook = true
      emptyUntil = now + empty.next()
      failures.reset()
      return
    }
    hasRound = true
    self.isCut = isCut
    isBehind = isCut || hasMore || rows >= limit || events >= self.events
    empty.reset()
    emptyUntil = nil
    gathersUntil = isBehind || drain != nil ? nil : now + Self.gathering(after: events)
    let seen = Double(events) / Double(rows)
    // A quick rise limits memory, and a slow fall keeps the rounds large.
    eventsPerRow = seen > eventsPerRow ? seen : eventsPerRow + (seen - eventsPerRow) / 4
  }

  /// The round is acknowledged, and its rows are deleted.
  package mutating func published() {
    hasRound = false
    failures.reset()
    events = min(2 * events, Self.eventsPerRound)
    drain?.mustLook = true
  }

  /// The store or the broker failed. The rows stay and are relayed again. `isShutOut`: the broker accepts nothing more
  /// from this worker until it has fenced again, or refuses what this worker sends.
  ///
  /// A leader that is shut out, or cannot fence, may be the only worker that cannot reach the broker. So it leaves the
  /// lead to another worker.
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
      follow(from: drain == nil ? end + followerTries : now)
    }
  }

  /// Events were written: read at once, unless the last attempt just failed.
  package mutating func hint() {
    emptyUntil = nil
  }

  /// The worker ends, and its last events are written. They are published before it ends, by this worker or by the
  /// leader. Then, or at `until`, the decision is ``Decision/end``.
  package mutating func drain(until: BootInstant, now: BootInstant) {
    drain = Drain(until: until)
    (emptyUntil, gathersUntil) = (nil, nil)
    if case .follower = role { role = .follower(nextTry: now) }
  }

  /// `rows`: the lowest and the highest waiting row; nil if none waits.
  package mutating func looked(_ rows: ClosedRange<Int64>?) {
    guard var drain else { return }
    let last = drain.last ?? rows?.upperBound
    drain.last = last
    drain.mustLook = false
    drain.isDone = rows.map { $0.lowerBound > last ?? $0.upperBound } ?? true
    self.drain = drain
  }
}
