import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import WorkerCore

/// A fleet in virtual time: one queue of events, and one seed that decides everything.
@MainActor final class Simulation {
  typealias Step = @MainActor () async throws -> Void

  private struct Event {
    var at: BootInstant
    var step: Step
  }

  let store: MemoryStore
  let sources = SimulatedSources()
  private(set) lazy var disk = SimulatedDisk(self)
  let seed: UInt64
  /// The store's clock.
  private let time: Lock<Int64>
  /// How far the store's clock is ahead of the world's.
  private var storeAhead = Duration.zero
  /// The store's clock jumped forward, so leases may end before their time.
  private var leasesAreShortUntil = BootInstant(nanoseconds: 0)
  private var trace = SimulationTrace()
  private var broken: BrokenInvariant?
  private var events: [Event] = []
  private(set) var now = BootInstant(nanoseconds: 0)
  var random: SplitMix64
  /// Whether messages get lost, power is cut, and processes are killed, frozen and cut off.
  var isFaulty = true

  init(seed: UInt64) {
    self.seed = seed
    random = SplitMix64(seed: seed)
    let time = Lock<Int64>(0)
    self.time = time
    store = MemoryStore(clock: { Timestamp(microseconds: time.withLock { $0 } / 1000) })
  }

  func after(_ delay: Duration, _ step: @escaping Step) {
    let event = Event(at: now + delay, step: step)
    // The latest event comes first, so that the next one can be taken from the end.
    var (low, high) = (0, events.count)
    while low < high {
      let middle = (low + high) / 2
      if events[middle].at > event.at { low = middle + 1 } else { high = middle }
    }
    events.insert(event, at: low)
  }

  /// Runs all events up to `end`, or until `isOver` returns true.
  func run(until end: BootInstant, _ isOver: () async throws -> Bool = { false }) async throws {
    var steps = 0
    while let event = events.last, event.at <= end {
      events.removeLast()
      if event.at > now { advance(to: event.at) }
      try await event.step()
      try verify()
      steps += 1
      guard steps.isMultiple(of: 400) else { continue }
      try await audit()
      if try await isOver() { return }
    }
    advance(to: end)
    try await audit()
  }

  // MARK: Invariants

  /// Notes what happens, for the trace of an invariant that breaks later.
  func note(_ text: @autoclosure @escaping () -> String, of task: UniqueID? = nil) {
    trace.add(text, of: task, at: now)
  }

  /// An invariant: if it does not hold, the run ends with the step that broke it.
  func check(_ holds: Bool, _ violation: @autoclosure () -> String, of task: UniqueID? = nil) {
    guard !holds, broken == nil else { return }
    let concerned = task.map { "task \($0.low): " } ?? ""
    broken = BrokenInvariant(
      description:
        "seed \(seed), \(now.nanoseconds / 1_000_000) ms: \(concerned)\(violation())\n\(trace.text(of: task))")
  }

  /// What happened last, as the trace of a broken invariant shows it.
  var lastSteps: String { trace.text(of: nil) }

  /// Throws if an invariant has not held.
  func verify() throws {
    if let broken { throw broken }
  }

  private func audit() async throws {
    let violations = try await store.audit()
    check(violations.isEmpty, "the store contradicts itself: \(violations)")
    for use in try await store.limits() {
      check(use.running <= use.limit ?? .max, "\(use.running) tasks run, over the limit of \(use.scope) \(use.name)")
    }
    try verify()
  }

  // MARK: Time

  private func advance(to next: BootInstant) {
    now = max(now, next)
    let nanoseconds = (now + storeAhead).nanoseconds
    time.withLock { $0 = nanoseconds }
  }

  /// The store's clock is set, as the wall clock of any machine may be. Back: leases last longer. Forward: they end before
  /// their time, and for as long as a fence may still be open two runs may think that they own a task.
  func jumpStoreClock(by duration: Duration) {
    note("the store's clock jumps by \(duration)")
    storeAhead = storeAhead + duration
    if duration > .zero { leasesAreShortUntil = now + .seconds(15) }
    advance(to: now)
  }

  /// Whether every lease lasts as long as its worker was told.
  var leasesAreWhole: Bool { now >= leasesAreShortUntil }

  func milliseconds(_ range: ClosedRange<Int>) -> Duration {
    .milliseconds(Int.random(in: range, using: &random))
  }

  /// Whether a fault with this probability happens now.
  func fault(_ probability: Double) -> Bool {
    Double.random(in: 0..<1, using: &random) < probability && isFaulty
  }

  /// For how long a process is frozen: briefly, or for longer than a lease.
  var freeze: Duration { isLucky ? milliseconds(10...5000) : milliseconds(15_000...40_000) }

  /// Heads or tails.
  var isLucky: Bool { Bool.random(using: &random) }

  /// Usually a millisecond or two, sometimes seconds.
  var latency: Duration {
    fault(0.02) ? milliseconds(100...4000) : milliseconds(0...3)
  }
}
