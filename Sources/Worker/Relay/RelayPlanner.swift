/// Decides when a worker tries to lead the relay, and how much of the outbox it takes at a time.
///
/// One worker of the fleet relays, so that the events of a task keep their order. The right ends with its term,
/// and like a lease it is used for two thirds of it only, counted from when it was asked for.
package struct RelayPlanner: Sendable {
  package enum Decision: Hashable, Sendable {
    /// Ask for the lead; answer with ``led(_:sentAt:now:)`` or ``failed(now:)``.
    case lead(seconds: Int)
    /// Read, publish and discard up to so many rows; answer with ``relayed(rows:events:of:now:)`` or ``failed(now:)``.
    case relay(rows: Int)
    case wait(until: BootInstant)
  }

  /// Seconds that the lead is asked for.
  package static let term = 6
  /// Events that one round aims at: enough to fill batches, little enough to hold in memory.
  package static let eventsPerRound = 4000
  private static let mostRows = 200

  private enum Role {
    case follower(nextTry: BootInstant)
    /// `renewAt` lies halfway to `until`, after which nothing may be published.
    case leader(renewAt: BootInstant, until: BootInstant)
  }

  private var role: Role
  private var notBefore: BootInstant?
  private var eventsPerRow = 20.0
  private var empty: Backoff
  private var random: SplitMix64

  package init(now: BootInstant, seed: UInt64) {
    role = .follower(nextTry: now)
    empty = Backoff(base: .milliseconds(5), limit: .milliseconds(200), seed: seed)
    random = SplitMix64(seed: seed &+ 1)
  }

  package func next(now: BootInstant) -> Decision {
    switch role {
    case .follower(let nextTry):
      return now < nextTry ? .wait(until: nextTry) : .lead(seconds: Self.term)
    case .leader(let renewAt, _):
      if now >= renewAt { return .lead(seconds: Self.term) }
      if let notBefore, now < notBefore { return .wait(until: min(notBefore, renewAt)) }
      let rows = Double(Self.eventsPerRound) / max(eventsPerRow, 1)
      return .relay(rows: min(max(Int(rows), 1), Self.mostRows))
    }
  }

  /// Whether what was read may still be published.
  package func mayPublish(now: BootInstant) -> Bool {
    if case .leader(_, let until) = role { now < until } else { false }
  }

  package mutating func led(_ leads: Bool, sentAt: BootInstant, now: BootInstant) {
    let until = sentAt + .seconds(Self.term) * 2 / 3
    if leads && now < until {
      role = .leader(renewAt: sentAt + .seconds(Self.term) / 3, until: until)
    } else {
      role = .follower(nextTry: now + .seconds(1) * Double.random(in: 0.5...1, using: &random))
    }
  }

  /// A round is done: `rows` with `events` of at most `limit` rows.
  package mutating func relayed(rows: Int, events: Int, of limit: Int, now: BootInstant) {
    if rows == 0 {
      notBefore = now + empty.next()
      return
    }
    empty.reset()
    notBefore = rows < limit ? now + empty.base : nil
    let seen = Double(events) / Double(rows)
    // Rising at once bounds memory, falling slowly keeps the rounds large.
    eventsPerRow = seen > eventsPerRow ? seen : eventsPerRow + (seen - eventsPerRow) / 4
  }

  /// The store or the broker failed; the rows stay and are relayed again.
  package mutating func failed(now: BootInstant) {
    let wait = now + empty.next()
    notBefore = wait
    if case .follower = role { role = .follower(nextTry: wait) }
  }

  /// Events were written: look at once.
  package mutating func hint() {
    notBefore = nil
  }
}
