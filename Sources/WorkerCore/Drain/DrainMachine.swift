import ReelhaulSystem

/// The steps of a worker's end: take no new work, stop the runs and hand their tasks back, publish the last events,
/// flush, give up the lease, exit. Each step waits for the one before. The time limit, or a second signal, ends the
/// drain at once.
package struct DrainMachine: Sendable {
  package enum Event: Hashable, Sendable {
    /// SIGTERM or SIGINT.
    case stopRequested
    /// The worker itself cannot continue. This does not shorten a drain, and neither does the first signal after it.
    case stopNeeded
    /// No claim is in flight, so no more runs begin.
    case intakeStopped
    /// Every run has ended and is settled.
    case runsEnded
    /// The relay has ended, or its time is over.
    case relayed
    /// Every produced message has been acknowledged.
    case flushed
    /// The lease has been given up.
    case retired
    /// The lease was lost, and the store could not be told: the tasks that ran then wait for its end.
    case abandoned
    /// Time has passed, so the limit may be over.
    case tick
  }

  package enum Action: Hashable, Sendable {
    /// End the services that take commands and tasks. Only claims are awaited.
    case stopIntake
    /// Tell every run to record its progress and to stop. The lease is still renewed.
    case stopRuns
    /// Finish the ingest that is under way, and publish the waiting events, as far as time allows. Then end the relay.
    case relay(until: BootInstant)
    /// Send all produced messages, and close the connections to Kafka, in time.
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

  /// The exit code of a drain that did not end in time, or without a lease. Tasks may be left to the sweep.
  package static let unfinished: Int32 = 1

  private let limit: Duration
  private var step = Step.serving
  private var isSignaled = false
  /// The time at which the worker exits in any case. Set when the drain begins.
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
      // Unpublished events are not lost, because the next worker publishes them. So this step leaves time for the
      // steps after it.
      return move(to: .relaying, .relay(until: (deadline ?? now) - limit / 5))
    case (.relaying, .relayed):
      return move(to: .flushing, .flush(until: (deadline ?? now) - limit / 10))
    case (.flushing, .flushed):
      return move(to: .retiring, .retire)
    case (.retiring, .retired):
      return move(to: .ended, .exit(0))
    case (.retiring, .abandoned):
      return move(to: .ended, .exit(Self.unfinished))
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
