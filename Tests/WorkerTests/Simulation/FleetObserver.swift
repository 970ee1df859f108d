import TaskCore
import TaskStore
import TestKit
import Testing

/// Sees everything the simulated workers do to the world, and holds it against the invariants.
@MainActor final class FleetObserver {
  private let simulation: Simulation
  private(set) var writes = 0
  private var recorded: [UUID: Int64] = [:]
  private(set) var events: [UUID: [TaskEvent]] = [:]

  init(_ simulation: Simulation) {
    self.simulation = simulation
  }

  /// A run wrote to its file. Its fence let it: so it must own the task, and nobody else.
  func wrote(_ task: UUID, epoch: Int) async throws {
    writes += 1
    let document = try #require(try await simulation.store.task(task))
    #expect(document.epoch == epoch, "written under epoch \(epoch) while \(document.epoch) owned it")
    #expect(document.state == .running, "written while \(document.state)")
  }

  /// The store answered that so many bytes are recorded: progress of a recorded task never goes back.
  func recorded(_ task: UUID, _ bytes: Int64) {
    #expect(bytes >= recorded[task] ?? 0)
    recorded[task] = max(recorded[task] ?? 0, bytes)
  }

  func published(_ pending: PendingEvents) {
    for event in pending.events { self.events[event.taskID, default: []].append(event) }
  }

  /// Every event of a task, once each and in order, as a consumer that skips what it has seen gets them.
  func history(of task: UUID) -> [TaskEvent] {
    var last = 0
    return (events[task] ?? []).filter { event in
      defer { last = max(last, event.sequence) }
      return event.sequence > last
    }
  }
}
