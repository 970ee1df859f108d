import TaskCore

/// An event for a web hook.
package struct HookEvent: Hashable, Sendable {
  package var taskID: UniqueID
  package var sequence: Int
  package var kind: TaskEvent.Kind
  package var url: String
  /// The URL's host, in lower case.
  package var host: String
  /// The JSON of the event, as it is in the topic `events`.
  package var json: [UInt8]
  /// The queue whose web hook it is for: the store takes its present URL. Nil if the URL is the task's own.
  package var queue: String?

  package init(
    taskID: UniqueID, sequence: Int, kind: TaskEvent.Kind, url: String, host: String, json: [UInt8],
    queue: String? = nil
  ) {
    self.taskID = taskID
    self.sequence = sequence
    self.kind = kind
    self.url = url
    self.host = host
    self.json = json
    self.queue = queue
  }
}

/// An event that is to be posted, and how often that was tried.
package struct HookDelivery: Hashable, Sendable {
  package var event: HookEvent
  /// From 1, once it was claimed.
  package var attempt: Int
  package var createdAt: Timestamp
  /// On the store's clock, when it was read.
  package var age: Duration
  /// When it may be claimed again.
  package var runAt: Timestamp
  /// Why the last attempt failed.
  package var error: String?
  /// When it was given up; nil as long as it is tried.
  package var gaveUpAt: Timestamp?

  package init(
    event: HookEvent, attempt: Int = 0, createdAt: Timestamp, age: Duration = .zero, runAt: Timestamp,
    error: String? = nil, gaveUpAt: Timestamp? = nil
  ) {
    self.event = event
    self.attempt = attempt
    self.createdAt = createdAt
    self.age = age
    self.runAt = runAt
    self.error = error
    self.gaveUpAt = gaveUpAt
  }
}

/// What waits for the web hooks at one host.
package struct HookBacklog: Hashable, Sendable {
  package var host: String
  /// At most ``FleetGauges/limit``.
  package var events: Int
  /// How long the oldest of these waits.
  package var age: Duration
  /// Why one of these could not be delivered, if that was tried.
  package var error: String?

  package init(host: String, events: Int, age: Duration, error: String? = nil) {
    self.host = host
    self.events = events
    self.age = age
    self.error = error
  }
}

/// The part of the store that keeps the events of web hooks until they are delivered, each at least once, and those of a
/// task one after the other.
///
/// Every call throws ``StoreError``.
package protocol HookStore: Sendable {
  /// Events that are already there are left as they are.
  func addHooks(_ events: [HookEvent]) async throws
  /// Takes up to `limit` deliveries for 60 seconds: the first of each task; nothing where the worker's lease is over.
  ///
  /// `underWay` has the worker's deliveries so far, by host. With those, a host gets at most `perHost`, and hosts with
  /// fewer come first. Hosts that are `failing` get at most `places` together.
  func claimHooks(
    _ worker: WorkerID, limit: Int, perHost: Int, besides underWay: [String: Int], failing: Set<String>, places: Int
  ) async throws -> [HookDelivery]
  /// It is delivered.
  func finishHook(_ task: UniqueID, sequence: Int) async throws
  /// Lets it, and the later ones of its task, be claimed again after `delay`. `error` is kept for people to read.
  func postponeHook(_ task: UniqueID, sequence: Int, after delay: Duration, error: String) async throws
  /// Nobody tries it again. It stays to be seen for a week, and the later ones of its task go on. If it waited for three
  /// days, others that waited so long for its URL, or seven days for its host, are given up as well. Returns how many are.
  func giveUpHook(_ task: UniqueID, sequence: Int, error: String) async throws -> Int
  /// The first hundred that are not delivered, of one task.
  func undeliveredHooks(of task: UniqueID) async throws -> [HookDelivery]
  /// The URLs to which events of tasks without a URL of their own go, by queue.
  func queueHooks() async throws -> [String: String]
  /// Sets the URL of a queue's tasks that have none of their own; nil for none. What waits for the former one goes to this
  /// one, as if nobody had tried it, or is dropped.
  func setQueueHook(_ queue: String, to url: String?) async throws
}
