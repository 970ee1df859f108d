import ReelhaulKafka

/// Settings of a worker's behaviour.
package struct WorkerSettings: Sendable {
  package var topics = TopicPlan()
  /// The number of tasks that run at once.
  package var concurrency = 64
  /// The length of the lease in seconds, at least 3. When the process dies, its tasks wait this long for another
  /// worker.
  package var leaseSeconds = 15
  /// The time between two renewals of the lease. It is shorter if the lease is short.
  package var renewalInterval = Duration.milliseconds(500)
  /// How long a drain may take.
  package var drainLimit = Duration.seconds(25)
  /// The mean time between two sweeps.
  package var sweepInterval = Duration.milliseconds(400)
  package var watchdog = Watchdog()
  /// How long one clean-up may take.
  package var cleanUpLimit = Duration.seconds(30)
  package var labels: [String: String] = [:]

  package init() {}
}
