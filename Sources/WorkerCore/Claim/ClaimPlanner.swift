import ReelhaulSystem
import TaskStore

/// Decides when to claim and how much: at most one claim in flight, large claims under load, and an idle worker that
/// asks ever more rarely. A worker takes no more than its part of what runs and waits, and leaves the rest to the others
/// for a moment.
package struct ClaimPlanner: Sendable {
  package enum Decision: Hashable, Sendable {
    /// Claim up to this number; answer with ``claimed(_:of:leavesTasks:areReady:now:)`` or ``failed(now:)``.
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
  /// The ``idlePause`` of a worker that has few beside it.
  package static let shortestIdlePause = Duration.milliseconds(250)
  /// A worker that waits for others asks again after this time.
  private static let glance = Duration.milliseconds(25)
  /// For how long a worker that nobody has relieved does not wait for others again.
  private static let selfReliance = Duration.seconds(10)

  /// The number of the present or the next call. A call without an answer is repeated with its number.
  package private(set) var call: Int64 = 1
  private var isClaiming = false
  private var hinted = false
  /// Whether to ask for the ``Demand`` before the present call. So an idle worker that asks writes nothing. Not while more
  /// waits than the workers can take, and never before a repeated call, which may have claimed tasks already.
  package private(set) var looksFirst = true
  /// Since when tasks have been left to other workers.
  private var leftSince: BootInstant?
  /// Until when no tasks are left to others.
  private var aloneUntil: BootInstant?
  private var lastClaim: BootInstant?
  private var notBefore: BootInstant?
  private var empty: Backoff
  /// An idle worker asks at least this often.
  package var idlePause: Duration {
    get { empty.limit }
    set { empty.limit = newValue }
  }
  /// What nobody has taken for so long is for everybody: each idle worker has asked meanwhile.
  private var patience: Duration { idlePause * 1.2 }

  package init(concurrency: Int, batch: Int = 500, seed: UInt64) {
    self.concurrency = concurrency
    self.batch = batch
    empty = Backoff(base: .milliseconds(5), limit: Self.shortestIdlePause, seed: seed)
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

  /// How many tasks to claim instead of `limit`: at most this worker's part, in eighths of its concurrency, so that single
  /// tasks are not sent round.
  package func part(of limit: Int, free: Int, _ demand: Demand?, now: BootInstant) -> Int {
    guard let demand else { return 0 }
    guard demand.ready > 0 else { return limit }
    if let aloneUntil, now < aloneUntil { return limit }
    if let leftSince, now >= leftSince + patience { return limit }
    let workers = max(1, demand.workers)
    let step = max(1, concurrency / 8)
    let steps = ((demand.running + demand.ready + workers - 1) / workers + step - 1) / step
    return min(limit, max(0, steps * step - (concurrency - free)))
  }

  /// The answer to a claim. A full answer suggests that more tasks are ready.
  ///
  /// - Parameters:
  ///   - leavesTasks: it was to take no more than its part, and others could take the rest.
  ///   - areReady: tasks were ready before. If it got none, others had them, or it looked through queues whose tasks were
  ///     withdrawn, and another call goes on there.
  package mutating func claimed(
    _ count: Int, of limit: Int, leavesTasks: Bool = false, areReady: Bool = false, now: BootInstant
  ) {
    isClaiming = false
    call += 1
    lastClaim = now
    looksFirst = count < limit
    if leavesTasks {
      leftSince = leftSince ?? now
      notBefore = now + Self.glance
      return
    }
    if count > 0, let leftSince, now >= leftSince + patience { aloneUntil = now + Self.selfReliance }
    leftSince = nil
    if count == 0, !hinted {
      let pause = empty.next()
      notBefore = now + (areReady ? min(pause, Self.glance) : pause)
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
    guard !isClaiming, leftSince == nil else { return }
    empty.reset()
    notBefore = nil
  }
}
