import ReelhaulSystem
import TaskStore

/// Decides when a worker registers, when it renews its lease, and when it must stop everything.
///
/// The database counts the lease from the moment of a renewal. The worker counts from the moment when it *sent* its
/// last successful renewal, and only to two thirds. So it has stopped before another worker may take its tasks,
/// whatever was delayed. A worker that had to stop, or whose lease is gone, registers again as a new worker.
package struct LeaseMachine: Sendable {
  package struct Timing: Sendable {
    package var lease: Duration
    package var renewal: Duration

    /// Both are at least a millisecond. `renewal` is well below two thirds of `lease`.
    package init(lease: Duration, renewal: Duration) {
      self.lease = lease
      self.renewal = min(renewal, lease / 6)
    }

    /// How long after sending a renewal the worker may still act on it.
    package var fence: Duration { lease * 2 / 3 }
  }

  package enum Action: Hashable, Sendable {
    /// Register with a new boot UUID; answer with ``registered(_:sentAt:now:)`` or ``registrationFailed(now:)``.
    case register
    /// The lease has begun: run tasks under it, with this fence.
    case begin(WorkerID, fence: BootInstant)
    /// Renew; answer with ``renewed(_:sentAt:isAlive:now:)`` or ``renewalFailed(_:now:)``.
    case renew(WorkerID)
    /// Move the fence; answer with ``fencePassed(_:now:)`` if it had already been reached.
    case extend(WorkerID, fence: BootInstant)
    /// Stop every task of this lease at once, and write nothing more for them.
    case abandon(WorkerID)
    /// There is no lease, and the last one is over for all workers: leave commands to workers that can reach the
    /// store.
    case retreat
  }

  private enum State {
    /// Can transition to: registering.
    case idle
    /// Can transition to: held, waiting, ended.
    case registering
    /// After a failed registration. Can transition to: registering, ended.
    case waiting(until: BootInstant)
    /// Can transition to: registering (the lease is lost), ended.
    case held(Held)
    case ended
  }

  private struct Held {
    var worker: WorkerID
    var fence: BootInstant
    var nextRenewal: BootInstant
    var isRenewing = false
    /// An intent was announced after the renewal in flight was sent, so another renewal must follow.
    var renewAgain = false
  }

  private let timing: Timing
  private var state = State.idle
  private var backoff: Backoff
  /// When the lost lease has also ended for other workers, unless a new one begins before.
  private var retreatAt: BootInstant?

  package init(timing: Timing, seed: UInt64) {
    self.timing = timing
    backoff = Backoff(base: .milliseconds(100), limit: .seconds(5), seed: seed)
  }

  /// The worker of the lease that is held.
  package var worker: WorkerID? {
    if case .held(let held) = state { held.worker } else { nil }
  }

  /// When ``tick(now:)`` must be called next; nil if only an answer can change anything.
  package var nextTick: BootInstant? {
    switch state {
    case .idle, .ended: nil
    case .registering: retreatAt
    case .waiting(let until): min(until, retreatAt ?? until)
    case .held(let held): held.isRenewing ? held.fence : min(held.fence, held.nextRenewal)
    }
  }

  package mutating func start() -> [Action] {
    guard case .idle = state else { return [] }
    state = .registering
    return [.register]
  }

  /// No renewal and no registration follows. The lease ends by itself, or is given up.
  package mutating func end() {
    state = .ended
  }

  package mutating func tick(now: BootInstant) -> [Action] {
    switch state {
    case .idle, .ended:
      return []
    case .registering:
      return retreat(now)
    case .waiting(let until):
      guard now >= until else { return retreat(now) }
      state = .registering
      return retreat(now) + [.register]
    case .held(var held):
      if now >= held.fence { return lose(held.worker, now) }
      guard !held.isRenewing, now >= held.nextRenewal else { return [] }
      return renew(&held)
    }
  }

  /// An intent for a running task exists: fetch it now instead of with the next regular renewal.
  package mutating func renewNow(now: BootInstant) -> [Action] {
    guard case .held(var held) = state else { return [] }
    if now >= held.fence { return lose(held.worker, now) }
    guard held.isRenewing else { return renew(&held) }
    held.renewAgain = true
    state = .held(held)
    return []
  }

  package mutating func registered(_ worker: WorkerID, sentAt: BootInstant, now: BootInstant) -> [Action] {
    guard case .registering = state else { return [] }
    let fence = sentAt + timing.fence
    guard now < fence else { return registrationFailed(now: now) }
    backoff.reset()
    retreatAt = nil
    state = .held(Held(worker: worker, fence: fence, nextRenewal: sentAt + timing.renewal))
    return [.begin(worker, fence: fence)]
  }

  package mutating func registrationFailed(now: BootInstant) -> [Action] {
    guard case .registering = state else { return [] }
    state = .waiting(until: now + backoff.next())
    return []
  }

  package mutating func renewed(
    _ worker: WorkerID, sentAt: BootInstant, isAlive: Bool, now: BootInstant
  ) -> [Action] {
    guard case .held(var held) = state, held.worker == worker else { return [] }
    // After the fence, refused writes have been given up already, so a late answer must not bring the lease back.
    guard isAlive, now < held.fence else { return lose(worker, now) }
    held.isRenewing = false
    held.fence = max(held.fence, sentAt + timing.fence)
    backoff.reset()
    held.nextRenewal = max(now, sentAt + timing.renewal)
    let extend = Action.extend(worker, fence: held.fence)
    if held.renewAgain { return [extend] + renew(&held) }
    state = .held(held)
    return [extend]
  }

  package mutating func renewalFailed(_ worker: WorkerID, now: BootInstant) -> [Action] {
    guard case .held(var held) = state, held.worker == worker else { return [] }
    if now >= held.fence { return lose(worker, now) }
    held.isRenewing = false
    held.renewAgain = false
    held.nextRenewal = now + min(backoff.next(), timing.renewal)
    state = .held(held)
    return []
  }

  /// The process was stopped after the answer and before the fence was moved.
  package mutating func fencePassed(_ worker: WorkerID, now: BootInstant) -> [Action] {
    guard case .held(let held) = state, held.worker == worker else { return [] }
    return lose(worker, now)
  }

  private mutating func renew(_ held: inout Held) -> [Action] {
    held.isRenewing = true
    held.renewAgain = false
    state = .held(held)
    return [.renew(held.worker)]
  }

  private mutating func lose(_ worker: WorkerID, _ now: BootInstant) -> [Action] {
    state = .registering
    retreatAt = now + (timing.lease - timing.fence)
    return [.abandon(worker), .register]
  }

  private mutating func retreat(_ now: BootInstant) -> [Action] {
    guard let time = retreatAt, now >= time else { return [] }
    retreatAt = nil
    return [.retreat]
  }
}
