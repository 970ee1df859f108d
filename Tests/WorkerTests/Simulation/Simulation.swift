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
  private let time: Lock<Int64>
  private var events: [Event] = []
  private(set) var now = BootInstant(nanoseconds: 0)
  var random: SplitMix64
  /// Whether messages get lost, power is cut, and processes are killed, frozen and cut off.
  var isFaulty = true

  init(seed: UInt64) {
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
      steps += 1
      if steps.isMultiple(of: 200), try await isOver() { return }
    }
    advance(to: end)
  }

  private func advance(to next: BootInstant) {
    now = max(now, next)
    let nanoseconds = now.nanoseconds
    time.withLock { $0 = nanoseconds }
  }

  func milliseconds(_ range: ClosedRange<Int>) -> Duration {
    .milliseconds(Int.random(in: range, using: &random))
  }

  /// Whether a fault with this probability happens now.
  func fault(_ probability: Double) -> Bool {
    Double.random(in: 0..<1, using: &random) < probability && isFaulty
  }

  /// A random choice with equal chances.
  var isLucky: Bool { Bool.random(using: &random) }

  /// Usually a millisecond or two, sometimes seconds.
  var latency: Duration {
    fault(0.02) ? milliseconds(100...4000) : milliseconds(0...3)
  }
}
