import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine

/// Observes every effect of the simulated workers, and checks it against the invariants.
@MainActor final class FleetObserver {
  private let simulation: Simulation
  private(set) var acts = 0
  private(set) var events: [UniqueID: [TaskEvent]] = [:]
  /// The compacted topic: the sequence of each task's last snapshot; `nil` once the task is removed.
  private(set) var snapshots: [UniqueID: Int?] = [:]
  /// The number of the producer from which the broker accepts rounds.
  private var producer = 0

  init(_ simulation: Simulation) {
    self.simulation = simulation
  }

  /// A run is about to change the world, and its fence is open. So it must be the only owner of the task.
  func acts(on task: UniqueID, epoch: Int) async throws {
    acts += 1
    let document = try #require(try await simulation.store.task(task))
    #expect(document.epoch == epoch, "epoch \(epoch) acts while \(document.epoch) owns \(task)")
    #expect(document.state.isOwned, "epoch \(epoch) acts while \(task) is \(document.state)")
  }

  /// A call of a run to the store. A call of a former owner must change nothing.
  func changesNothingOfOthers(_ task: UniqueID, epoch: Int, _ call: () async throws -> [Bool]) async throws -> [Bool] {
    let before = try await simulation.store.task(task)
    let answers = try await call()
    if before?.epoch != epoch {
      let after = try await simulation.store.task(task)
      #expect(after == before, "epoch \(epoch) has changed \(task), which has another owner")
    }
    return answers
  }

  /// The store has recorded a checkpoint. A power cut at this moment must not destroy the recorded bytes.
  func recorded(_ checkpoint: DownloadCheckpoint) {
    // The file may be published already, or replaced by the file of a later owner.
    guard let file = simulation.disk.staged[checkpoint.stagingName] else { return }
    let ahead = SimulatedSources.blocks(checkpoint.done).subtracting(file.stable.keys)
    #expect(ahead.isEmpty, "recorded ahead of the disk: \(ahead.sorted()) of \(checkpoint.stagingName)")
  }

  /// The task's file has got its name: it must be whole, of one version, and on stable storage.
  func published(_ task: UniqueID) {
    let file = simulation.disk.published[task]
    #expect(file?.blocks.count == simulation.sources.blocks(of: task), "\(task) is not whole")
    #expect(Set(file?.blocks.values.map(\.self) ?? []).count == 1, "\(task) is a mix of several versions")
    #expect(file?.stable == file?.blocks, "\(task) was published before it was synced")
  }

  /// From now on the broker accepts rounds only from the caller, which names the returned number.
  func fence() -> Int {
    producer += 1
    return producer
  }

  /// A round arrives at the broker. Returns `false` if it is refused, and nil if the broker loses it before it
  /// acknowledges it.
  func published(_ pending: PendingEvents, by producer: Int) -> Bool? {
    guard producer == self.producer else { return false }
    if simulation.fault(0.05) { return nil }
    for event in pending.events {
      self.events[event.taskID, default: []].append(event)
      let (former, sequence) = (snapshots[event.taskID] ?? nil, event.task?.sequence)
      #expect(sequence ?? .max >= former ?? 0, "a snapshot of \(event.taskID) is older than the one before")
      snapshots[event.taskID] = .some(sequence)
    }
    return true
  }

  /// Every event of a task, each once and in order, as seen by a consumer that skips repeated events.
  func history(of task: UniqueID) -> [TaskEvent] {
    var last = 0
    return (events[task] ?? []).filter { event in
      defer { last = max(last, event.sequence) }
      return event.sequence > last
    }
  }
}
