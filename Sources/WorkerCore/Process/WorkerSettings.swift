import ReelhaulKafka

/// The settings of a worker's decisions.
package struct WorkerSettings: Sendable {
  package var topics = TopicPlan()
  /// The tasks that run at once.
  package var concurrency = 64
  /// The lease of this process, at least 3: so long its tasks wait for another worker when it dies.
  package var leaseSeconds = 15
  /// The time between two renewals of it, or less where the lease is short.
  package var renewalInterval = Duration.milliseconds(500)
  /// How long a drain may take.
  package var drainLimit = Duration.seconds(25)
  /// The mean time between two sweeps.
  package var sweepInterval = Duration.milliseconds(400)
  package var watchdog = Watchdog()
  package var labels: [String: String] = [:]

  package init() {}
}
