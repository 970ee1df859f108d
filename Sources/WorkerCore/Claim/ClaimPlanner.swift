import ReelhaulSystem

/// Decides when to claim and how much: at most one claim in flight, large claims under load, and an idle worker that
/// asks ever more rarely.
package struct ClaimPlanner: Sendable {
  package enum Decision: Hashable, Sendable {
    /// Claim up to this number; answer with ``claimed(_:of:now:)`` or ``failed(now:)``.
    case claim(Int)
    /// Ask again at this time, or after an event; nil: only after an event.
    case wait(until: BootInstant?)
  }

  /// The number of tasks that may run at once.
  package let concurrency: Int
  /// The most tasks in one claim. Larger claims would delay the other workers.
  package let batch: Int
  /// A busy worker waits up to this time for an eighth of its tasks to end, instead of claiming one by one.
  private static let gathering = Duration.milliseconds(5)

  /// The number of the present or the next call. A call without an answer is repeated with its number.
  package private(set) var call: Int64 = 1
  private var isClaiming = false
  private var hinted = false
  /// Whether to ask if any task is ready before the present call: the last one found none, and nobody has hinted at any
  /// since. So an idle worker that asks writes nothing. Never before a repeated call, which may have claimed tasks already.
  package private(set) var looksFirst = false
  private var lastClaim: BootInstant?
  private var notBefore: BootInstant?
  private var empty: Backoff

  package init(concurrency: Int, batch: Int = 500, seed: UInt64) {
    self.concurrency = concurrency
    self.batch = batch
    empty = Backoff(base: .milliseconds(5), limit: .milliseconds(250), seed: seed)
  }

  package mutating func next(free: Int, now: BootInstant) -> Decision {
    guard !isClaiming, free > 0 else { return .wait(until: nil) }
    if let notBefore, now < notBefore { return .wait(until: notBefore) }
    if let lastClaim, free < concurrency / 8, now < lastClaim + Self.gathering {
      return .wait(until: lastClaim + Self.gathering)
    }
    isClaiming = true
    hinted = false
    return .claim(min(free, batch))
  }

  /// The answer to a claim. A full answer suggests that more tasks are ready.
  package mutating func claimed(_ count: Int, of limit: Int, now: BootInstant) {
    isClaiming = false
    call += 1
    lastClaim = now
    looksFirst = count == 0 && !hinted
    if looksFirst {
      notBefore = now + empty.next()
      return
    }
    empty.reset()
    notBefore = count < limit && !hinted ? now + empty.base : nil
  }

  /// The claim failed. Nothing is known about the backlog.
  package mutating func failed(now: BootInstant) {
    isClaiming = false
    looksFirst = false
    notBefore = now + empty.next()
  }

  /// Tasks may have become ready: submitted, due, swept or unblocked.
  package mutating func hint() {
    hinted = true
    guard !isClaiming else { return }
    looksFirst = false
    empty.reset()
    notBefore = nil
  }
}
