import ReelhaulSystem

/// The way out: no new work, stop what runs and hand it back, see the last events published, flush, give up the lease,
/// exit. Each step waits for the one before; the limit, or a second signal, cuts it short.
package struct DrainMachine: Sendable {
  package enum Event: Hashable, Sendable {
    /// SIGTERM or SIGINT.
    case stopRequested
    /// The worker itself cannot go on. It cuts no drain short, and the first signal after it does not, either.
    case stopNeeded
    /// No claim is in flight: no more runs begin.
    case intakeStopped
    /// Every run has ended and is settled.
    case runsEnded
    /// The relay has ended, or its time is over.
    case relayed
    /// Every produced message is acknowledged.
    case flushed
    /// The lease is given up.
    case retired
    /// The limit may be over.
    case tick
  }

  package enum Action: Hashable, Sendable {
    /// End the services that take commands and tasks. Only claims are waited for.
    case stopIntake
    /// Tell every run to record what it has and to stop. The lease is renewed meanwhile.
    case stopRuns
    /// Have what was being ingested finished, and the events published that wait in the outbox, as far as that is done
    /// in time; then end the relay.
    case relay(until: BootInstant)
    /// Send what was produced, and close the connections to Kafka, in time.
    case flush(until: BootInstant)
    case retire
    case exit(Int32)
  }

  private enum Step {
    /// Can transition to: stoppingIntake.
    case serving
    /// Can transition to: stoppingRuns, ended.
    case stoppingIntake
    /// Can transition to: relaying, ended.
    case stoppingRuns
    /// Can transition to: flushing, ended.
    case relaying
    /// Can transition to: retiring, ended.
    case flushing
    /// Can transition to: ended.
    case retiring
    case ended
  }

  /// The exit code of a drain that did not end in time: tasks may be left to the sweep.
  package static let unfinished: Int32 = 1

  private let limit: Duration
  private var step = Step.serving
  private var isSignaled = false
  /// When the worker exits in any case; set once it drains.
  package private(set) var deadline: BootInstant?

  package init(limit: Duration) {
    self.limit = limit
  }

  package mutating func handle(_ event: Event, now: BootInstant) -> [Action] {
    switch (step, event) {
    case (.serving, .stopRequested), (.serving, .stopNeeded):
      isSignaled = event == .stopRequested
      deadline = now + limit
      return move(to: .stoppingIntake, .stopIntake)
    case (.stoppingIntake, .intakeStopped):
      return move(to: .stoppingRuns, .stopRuns)
    case (.stoppingRuns, .runsEnded):
      // What stays behind is not lost: the next worker publishes it. So the steps after this one have some time left.
      return move(to: .relaying, .relay(until: (deadline ?? now) - limit / 5))
    case (.relaying, .relayed):
      return move(to: .flushing, .flush(until: (deadline ?? now) - limit / 10))
    case (.flushing, .flushed):
      return move(to: .retiring, .retire)
    case (.retiring, .retired):
      return move(to: .ended, .exit(0))
    case (.serving, _), (.ended, _):
      return []
    case (_, .stopRequested):
      guard isSignaled else {
        isSignaled = true
        return []
      }
      return move(to: .ended, .exit(Self.unfinished))
    case (_, .tick):
      guard let deadline, now >= deadline else { return [] }
      return move(to: .ended, .exit(Self.unfinished))
    default:
      return []
    }
  }

  private mutating func move(to next: Step, _ action: Action) -> [Action] {
    step = next
    return [action]
  }
}
