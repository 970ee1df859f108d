import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// Publishes the outbox to the `events` and `tasks` topics. ``RelayPlanner`` makes the decisions.
///
/// A round is one Kafka transaction. Its rows are discarded afterwards, so an event may be published twice, with the
/// same id, and is never lost.
package actor Relay {
  private let loop: EventLoop
  private let store: any OutboxStore & HookStore
  private let keeper: LeaseKeeper
  private let sink: any RoundSink
  private let topics: TopicPlan
  private let source: String
  private let fleet: FleetSize
  private let metrics: WorkerMetrics
  private let tracer: Tracer?
  private let log: Logger
  private let wakeup: Wakeup
  private let decoding = BlockingPool(name: "relay", threads: 1)
  private var planner = RelayPlanner(now: .now, seed: .random(in: 0 ... .max))
  /// The round that was read last and is not published yet.
  private var round = PendingEvents()
  private var outage = Outage()
  /// The web hooks of queues, and when they are read again.
  private var queueHooks: (urls: [String: String], until: BootInstant) = ([:], .now)
  private static let hooksAge = Duration.seconds(5)
  /// The longest time between two looks of a follower.
  private static let longestTries = Duration.seconds(4)

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// `source` names this worker in the events, as a CloudEvents source.
  package init(
    loop: EventLoop, store: any OutboxStore & HookStore, keeper: LeaseKeeper, sink: any RoundSink, topics: TopicPlan,
    source: String, fleet: FleetSize, metrics: WorkerMetrics, tracer: Tracer? = nil, log: Logger
  ) {
    self.loop = loop
    self.store = store
    self.keeper = keeper
    self.sink = sink
    self.topics = topics
    self.source = source
    self.fleet = fleet
    self.metrics = metrics
    self.tracer = tracer
    self.log = log
    wakeup = Wakeup(loop: loop)
  }

  /// Events were written.
  package func hint() async {
    planner.hint()
    await wakeup.call()
  }

  /// The worker's last events have been written. ``run()`` returns once they are published, or at `deadline`.
  package func drain(until deadline: BootInstant) async {
    planner.drain(until: deadline, now: .now)
    await wakeup.call()
  }

  /// Runs until it is drained, or until its task is canceled.
  package func run() async {
    defer { decoding.abandon() }
    while !Task.isCancelled {
      do {
        switch planner.next(now: .now) {
        case .wait(let until): await wakeup.sleep(until: until)
        case .lead(let seconds): try await lead(seconds)
        case .fence(let until): try await fence(until)
        case .read(let rows): take(try await read(rows), of: rows)
        case .publish(let rows, let until): try await publish(readingAhead: rows, until: until)
        case .look: try await look()
        case .end: return
        }
      } catch {
        let isShutOut = (error as? KafkaError).map { $0.isFatal || $0.isRefusal } ?? false
        planner.failed(now: .now, isShutOut: isShutOut)
        store.doubtEvents()
        log.log(outage.failed(error), "the relay cannot publish events", ["error": .text("\(error)")])
      }
    }
  }

  private func lead(_ seconds: Int) async throws {
    guard let lease = await keeper.lease else {
      planner.led(false, sentAt: .now, now: .now)
      return
    }
    let sentAt = BootInstant.now
    let leads = try await store.lead(lease.worker, seconds: seconds)
    planner.followerTries = fleet.pause(.seconds(1), of: 4, atMost: Self.longestTries)
    planner.led(leads, sentAt: sentAt, now: .now)
    // Another worker leads. Whether this one could publish is not known before it leads again.
    if !leads { round = PendingEvents() }
  }

  private func look() async throws {
    // Without a lease this worker cannot lead, and the database may be unreachable.
    planner.looked(await keeper.lease == nil ? nil : try await store.pendingRows())
  }

  private func fence(_ until: BootInstant) async throws {
    try await sink.fence(within: BootInstant.now.duration(to: until))
    store.doubtEvents()
    planner.fenced()
  }

  private func publish(readingAhead limit: Int?, until: BootInstant) async throws {
    let current = round
    round = PendingEvents()
    guard let limit else { return try await publish(current, until) }
    async let next = read(limit, behind: current.wholeRows)
    try await publish(current, until)
    take(try await next, of: limit)
  }

  private func publish(_ round: PendingEvents, _ until: BootInstant) async throws {
    // The other tasks of a round are cut only if this is not enough.
    var limits = [128 << 10, EventMessages.excerpt][...]
    var limit: Int?
    while true {
      do {
        let messages = EventMessages(round, topics: topics, source: source, cutAbove: limit)
        try await sink.publish(messages, within: BootInstant.now.duration(to: until))
        break
      } catch let error as KafkaError where error.code == .messageTooLarge && !error.isFatal && !limits.isEmpty {
        // A topic accepts smaller records than this fleet makes. Repeating would never help, and would block all later
        // events.
        limit = limits.removeFirst()
        log.warning(
          "the document of a task is too long for Kafka: its events lack output, parameters, labels and after",
          ["error": .text("\(error)"), "bytes": .integer(limit ?? 0)])
        // After a refusal by a broker, librdkafka (2.0) skips sequence numbers, and its next transaction fails.
        try await fence(until)
      }
    }
    try await addHooks(of: round, until)
    try await store.discardEvents(round.wholeRows)
    if let batch = round.cutBatch { try await store.discardFirstEvents(batch) }
    planner.published()
    metrics.published(round)
    tracer?.published(round)
    outage.recovered()
  }

  /// Before the events are discarded, so that none is lost; a repeated round adds nothing twice.
  private func addHooks(of round: PendingEvents, _ until: BootInstant) async throws {
    if !round.batches.isEmpty, queueHooks.until.hasPassed {
      queueHooks = (try await store.queueHooks(), .now + Self.hooksAge)
    }
    let events = HookEvent.events(of: round, queues: queueHooks.urls)
    guard !events.isEmpty else { return }
    // Another leader may have added them, and sent them.
    guard !until.hasPassed else { throw LeadIsOver() }
    try await store.addHooks(events)
  }

  private func take(_ next: PendingEvents, of limit: Int) {
    round = next
    planner.read(
      rows: next.batches.count, events: next.eventCount, of: limit, isCut: next.cutBatch != nil,
      hasMore: next.hasMore, now: .now)
    // Only an empty round ends the outage here. For other rounds Kafka's answer decides.
    if next.batches.isEmpty { outage.recovered() }
  }

  /// On a thread of its own, so that the loop stays free while a large round is decoded.
  private func read(_ limit: Int, behind rows: [Int64] = []) async throws -> PendingEvents {
    try await Task(executorPreference: decoding) { [store, bytes = planner.bytes] in
      try await store.pendingEvents(limit: limit, bytes: bytes, excluding: rows)
    }.value
  }
}

/// Publishing a round took longer than the lead.
private struct LeadIsOver: Error, CustomStringConvertible {
  var description: String { "the round took longer than this worker leads" }
}
