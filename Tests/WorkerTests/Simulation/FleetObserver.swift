import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine

/// Sees everything the simulated workers do to the world, and holds it against the invariants.
@MainActor final class FleetObserver {
  private let simulation: Simulation
  private(set) var acts = 0
  private(set) var events: [UniqueID: [TaskEvent]] = [:]
  /// Of the compacted topic: the sequence of each task's last snapshot, `nil` once it is removed.
  private(set) var snapshots: [UniqueID: Int?] = [:]
  /// Which producer the broker takes rounds from, counted.
  private var producer = 0

  init(_ simulation: Simulation) {
    self.simulation = simulation
  }

  /// A run is about to touch the world. Its fence lets it: so it must own the task, and nobody else.
  func acts(on task: UniqueID, epoch: Int) async throws {
    acts += 1
    let document = try #require(try await simulation.store.task(task))
    #expect(document.epoch == epoch, "epoch \(epoch) acts while \(document.epoch) owns \(task)")
    #expect(document.state.isOwned, "epoch \(epoch) acts while \(task) is \(document.state)")
  }

  /// A call of a run to the store: one of a former owner must change nothing.
  func changesNothingOfOthers(_ task: UniqueID, epoch: Int, _ call: () async throws -> [Bool]) async throws -> [Bool] {
    let before = try await simulation.store.task(task)
    let answers = try await call()
    if before?.epoch != epoch {
      let after = try await simulation.store.task(task)
      #expect(after == before, "epoch \(epoch) has changed \(task), which is another's")
    }
    return answers
  }

  /// The store has taken a checkpoint: a power cut at this moment must leave what it speaks of.
  func recorded(_ checkpoint: DownloadCheckpoint) {
    // It may be published already, or replaced by the file of a later owner.
    guard let file = simulation.disk.staged[checkpoint.stagingName] else { return }
    let ahead = SimulatedSources.blocks(checkpoint.done).subtracting(file.stable.keys)
    #expect(ahead.isEmpty, "recorded ahead of the disk: \(ahead.sorted()) of \(checkpoint.stagingName)")
  }

  /// The task's file has its name: it is whole, of one version, and on stable storage.
  func published(_ task: UniqueID) {
    let file = simulation.disk.published[task]
    #expect(file?.blocks.count == simulation.sources.blocks(of: task), "\(task) is not whole")
    #expect(Set(file?.blocks.values.map(\.self) ?? []).count == 1, "\(task) is mixed of several versions")
    #expect(file?.stable == file?.blocks, "\(task) was published before it was synced")
  }

  /// The broker takes rounds from the caller alone from now on, by the number it returns.
  func fence() -> Int {
    producer += 1
    return producer
  }

  /// A round arrives at the broker; `false` where it is refused, nil where the broker loses it before it is acknowledged.
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

  /// Every event of a task, once each and in order, as a consumer that skips what it has seen gets them.
  func history(of task: UniqueID) -> [TaskEvent] {
    var last = 0
    return (events[task] ?? []).filter { event in
      defer { last = max(last, event.sequence) }
      return event.sequence > last
    }
  }
}
