import TaskCore
import TaskStore
import TestKit
import Testing

/// Sees everything the simulated workers do to the world, and holds it against the invariants.
@MainActor final class FleetObserver {
  private let simulation: Simulation
  private(set) var writes = 0
  private var recorded: [UniqueID: Int64] = [:]
  private(set) var events: [UniqueID: [TaskEvent]] = [:]
  /// Of the compacted topic: the sequence of each task's last snapshot, `nil` once it is removed.
  private(set) var snapshots: [UniqueID: Int?] = [:]
  /// Which producer the broker takes rounds from, counted.
  private var producer = 0

  init(_ simulation: Simulation) {
    self.simulation = simulation
  }

  /// A run wrote to its file. Its fence let it: so it must own the task, and nobody else.
  func wrote(_ task: UniqueID, epoch: Int) async throws {
    writes += 1
    let document = try #require(try await simulation.store.task(task))
    #expect(document.epoch == epoch, "written under epoch \(epoch) while \(document.epoch) owned it")
    #expect(document.state == .running, "written while \(document.state)")
  }

  /// The store answered that so many bytes are recorded: progress of a recorded task never goes back.
  func recorded(_ task: UniqueID, _ bytes: Int64) {
    #expect(bytes >= recorded[task] ?? 0)
    recorded[task] = max(recorded[task] ?? 0, bytes)
  }

  /// The broker takes rounds from the caller alone from now on, by the number it returns.
  func fence() -> Int {
    producer += 1
    return producer
  }

  /// A round arrives at the broker; `false` where it is refused.
  func published(_ pending: PendingEvents, by producer: Int) -> Bool {
    guard producer == self.producer else { return false }
    for event in pending.events {
      self.events[event.taskID, default: []].append(event)
      let (former, sequence) = (snapshots[event.taskID] ?? nil, event.task?.sequence)
      #expect(sequence ?? .max >= former ?? 0, "a snapshot of \(event.taskID) is older than the one before")
      snapshots[event.taskID] = .some(sequence)
    }
    return true
  }

  /// Every event of a task, once each and in order, as a consumer that skips what it has seen gets them.
  func history(of task: UniqueID) -> [TaskEvent] {
    var last = 0
    return (events[task] ?? []).filter { event in
      defer { last = max(last, event.sequence) }
      return event.sequence > last
    }
  }
}
