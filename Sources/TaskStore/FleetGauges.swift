import TaskCore

/// How much is in a store now, for metrics. The counts of ``tasks`` are maintained, and exact; the others end at ``limit``, so
/// that reading them costs little however much there is.
package struct FleetGauges: Hashable, Sendable {
  package struct Key: Hashable, Sendable {
    package var queue: String
    package var kind: TaskKind

    package init(queue: String, kind: TaskKind) {
      self.queue = queue
      self.kind = kind
    }
  }

  /// Why a task that is not finished cannot be claimed, though no worker owns it.
  package enum Hold: String, CaseIterable, Sendable {
    /// A limit is used up.
    case cap
    /// It is paused.
    case pause
    /// Its time has not come: it was submitted for later, or failed and is tried again later.
    case schedule
    /// It waits for other tasks.
    case dependency
    /// No live worker has its kind or its storage.
    case worker
  }

  /// Each count of what waits of one queue and kind, for its time, and for the web hooks at one host, is at most this.
  package static let limit = 10_000

  /// All tasks but the succeeded ones.
  package var tasks: [TaskState: [Key: Int]]
  /// Those that a claim would find now.
  package var runnable: [Key: Int]
  package var held: [Hold: Int]
  /// How long ago the oldest runnable task of a queue became ready; if it ran before, since its last start.
  package var oldestRunnable: [String: Duration]
  /// Events that wait to be published, and how long the oldest does.
  package var events: Int
  package var eventAge: Duration
  /// Events that wait for web hooks, and how long the oldest does.
  package var hooks: Int
  package var hookAge: Duration

  package init(
    tasks: [TaskState: [Key: Int]] = [:], runnable: [Key: Int] = [:], held: [Hold: Int] = [:],
    oldestRunnable: [String: Duration] = [:], events: Int = 0, eventAge: Duration = .zero,
    hooks: Int = 0, hookAge: Duration = .zero
  ) {
    self.tasks = tasks
    self.runnable = runnable
    self.held = held
    self.oldestRunnable = oldestRunnable
    self.events = events
    self.eventAge = eventAge
    self.hooks = hooks
    self.hookAge = hookAge
  }

  package mutating func add(_ waiting: [HookBacklog]) {
    hooks = waiting.reduce(0) { $0 + $1.events }
    hookAge = waiting.map(\.age).max() ?? .zero
  }
}

/// Tells how much is in the store.
package protocol GaugeStore: Sendable {
  func gauges() async throws -> FleetGauges
}
