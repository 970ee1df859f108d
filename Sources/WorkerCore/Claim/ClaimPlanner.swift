import ReelhaulSystem

/// Decides when to claim and how much: at most one claim in flight, large claims under load, and an idle worker that
/// asks ever more rarely.
package struct ClaimPlanner: Sendable {
  package enum Decision: Hashable, Sendable {
    /// Claim up to so many; answer with ``claimed(_:of:now:)`` or ``failed(now:)``.
    case claim(Int)
    /// Ask again then, or when something happened; `nil`: only when something happened.
    case wait(until: BootInstant?)
  }

  /// The tasks that may run at once.
  package let concurrency: Int
  /// The most that one call takes: larger ones hold up the other workers.
  package let batch: Int
  /// While a worker is busy it waits up to so long for an eighth of its tasks to end, rather than to claim one by one.
  private static let gathering = Duration.milliseconds(5)

  /// The number of the call that is made now or next: an unanswered one is repeated under its number.
  package private(set) var call: Int64 = 1
  private var isClaiming = false
  private var hinted = false
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

  /// The answer to a claim. A full one suggests that more is ready.
  package mutating func claimed(_ count: Int, of limit: Int, now: BootInstant) {
    isClaiming = false
    call += 1
    lastClaim = now
    if count == 0 && !hinted {
      notBefore = now + empty.next()
      return
    }
    empty.reset()
    notBefore = count < limit && !hinted ? now + empty.base : nil
  }

  /// The claim did not succeed; nothing is known about the backlog.
  package mutating func failed(now: BootInstant) {
    isClaiming = false
    notBefore = now + empty.next()
  }

  /// Something may have become ready: it was ingested, fell due, was swept or unblocked.
  package mutating func hint() {
    hinted = true
    guard !isClaiming else { return }
    empty.reset()
    notBefore = nil
  }
}
