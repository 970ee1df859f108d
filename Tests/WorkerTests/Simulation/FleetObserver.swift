import MemoryTaskStore
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
  /// What the last owner of each task has recorded.
  private var checkpoints: [UniqueID: Checkpoint] = [:]
  /// The last claim of each task.
  private var owners: [UniqueID: (epoch: Int, worker: WorkerID)] = [:]
  /// The settlements that the store has taken: they may be repeated.
  private var settled: Set<Settled> = []
  /// Which producer the broker takes rounds from, counted.
  private var producer = 0

  private struct Settled: Hashable {
    var task: UniqueID
    var epoch: Int
  }

  init(_ simulation: Simulation) {
    self.simulation = simulation
  }

  // MARK: One owner

  /// The store has handed tasks out: each to a new owner, with what the last one has recorded.
  func claimed(_ claims: [Claim], by worker: WorkerID) {
    for claim in claims {
      let (task, epoch) = (claim.spec.id, claim.epoch)
      simulation.note("worker \(worker.rawValue) claims it, epoch \(epoch)", of: task)
      if let owner = owners[task] {
        let isRepeated = owner == (epoch, worker)
        simulation.check(isRepeated || epoch > owner.epoch, "claimed again with epoch \(epoch)", of: task)
      }
      owners[task] = (epoch, worker)
      simulation.check(
        claim.checkpoint == checkpoints[task], "epoch \(epoch) gets another checkpoint than was recorded", of: task)
    }
  }

  /// A run is about to touch the world. Its fence lets it: so it must own the task, and nobody else.
  func acts(on task: UniqueID, epoch: Int) async throws {
    acts += 1
    let document = try #require(try await simulation.store.task(task))
    guard simulation.leasesAreWhole else { return }
    simulation.check(document.epoch == epoch, "epoch \(epoch) acts while \(document.epoch) owns it", of: task)
    simulation.check(document.state.isOwned, "epoch \(epoch) acts while it is \(document.state)", of: task)
  }

  /// A run records a checkpoint.
  func checkpoint(_ write: CheckpointWrite) async throws -> [Bool] {
    let (task, epoch) = (write.taskID, write.epoch)
    let answers = try await changesNothingOfOthers(task, epoch: epoch) { isOwner in
      let answers = try await simulation.store.checkpoint([write])
      simulation.check(answers == [isOwner], "a checkpoint of epoch \(epoch) is answered \(answers)", of: task)
      return answers
    }
    if answers == [true] {
      checkpoints[task] = write.checkpoint
      if let checkpoint = try? DownloadCheckpoint(write.checkpoint) { recorded(checkpoint, of: task) }
    }
    return answers
  }

  /// A run settles its task.
  func settle(_ settlement: Settlement) async throws -> [Bool] {
    let (task, epoch) = (settlement.taskID, settlement.epoch)
    let key = Settled(task: task, epoch: epoch)
    return try await changesNothingOfOthers(task, epoch: epoch) { isOwner in
      let answers = try await simulation.store.settle([settlement])
      // The answer to an earlier call may have been lost. The store keeps it until another epoch is settled.
      let mayBeTaken = isOwner || settled.contains(key)
      simulation.check(answers == [true] ? mayBeTaken : !isOwner, "epoch \(epoch) settles: \(answers)", of: task)
      if answers == [true] { settled.insert(key) }
      return answers
    }
  }

  /// A write of a run to the store: one of a former owner must change nothing.
  private func changesNothingOfOthers(
    _ task: UniqueID, epoch: Int, _ write: (_ isOwner: Bool) async throws -> [Bool]
  ) async throws -> [Bool] {
    let before = try await simulation.store.task(task)
    let isOwner = before?.epoch == epoch && before?.state.isOwned == true
    let answers = try await write(isOwner)
    simulation.note("the store answers \(answers) to epoch \(epoch)", of: task)
    guard !isOwner else { return answers }
    let after = try await simulation.store.task(task)
    simulation.check(after == before, "epoch \(epoch) has changed it, and does not own it", of: task)
    return answers
  }

  /// A worker renews its lease: what it tells of tasks that are not its own any more changes nothing.
  func renew(_ worker: WorkerID, _ samples: [ProgressSample]) async throws -> Renewal {
    func progress(of sample: ProgressSample) async throws -> [Int64?] {
      let document = try await simulation.store.task(sample.taskID)
      return [document?.bytesDone, document?.bytesTotal, document?.rate]
    }
    var former: [(sample: ProgressSample, progress: [Int64?])] = []
    for sample in samples where try await simulation.store.task(sample.taskID)?.epoch != sample.epoch {
      former.append((sample, try await progress(of: sample)))
    }
    let renewal = try await simulation.store.renew(worker, samples: samples)
    for (sample, before) in former {
      let after = try await progress(of: sample)
      simulation.check(after == before, "epoch \(sample.epoch) has told its progress", of: sample.taskID)
    }
    return renewal
  }

  // MARK: The disk

  /// The store has taken a checkpoint: a power cut at this moment must leave what it speaks of.
  private func recorded(_ checkpoint: DownloadCheckpoint, of task: UniqueID) {
    // It may be published already, or replaced by the file of a later owner.
    guard let file = simulation.disk.staged[checkpoint.stagingName] else { return }
    let ahead = SimulatedSources.blocks(checkpoint.done).subtracting(file.stable.keys)
    simulation.check(ahead.isEmpty, "recorded ahead of the disk: \(ahead.sorted())", of: task)
  }

  /// A power cut leaves everything that is recorded.
  func powerWasCut() {
    for task in checkpoints.keys.sorted() {
      guard let checkpoint = checkpoints[task].flatMap({ try? DownloadCheckpoint($0) }),
        let file = simulation.disk.staged[checkpoint.stagingName]
      else { continue }
      let lost = SimulatedSources.blocks(checkpoint.done).subtracting(file.blocks.keys)
      simulation.check(lost.isEmpty, "the power cut has taken recorded blocks: \(lost.sorted())", of: task)
    }
  }

  /// The task's file has got its name: it must be whole, of one version, and on stable storage.
  func published(_ task: UniqueID) {
    let file = simulation.disk.published[task]
    simulation.check(file?.blocks.count == simulation.sources.blocks(of: task), "its file is not whole", of: task)
    simulation.check(Set(file?.blocks.values.map(\.self) ?? []).count == 1, "its file mixes versions", of: task)
    simulation.check(file?.stable == file?.blocks, "its file was published before it was synced", of: task)
  }

  // MARK: Events

  /// The broker takes rounds from the caller alone from now on, by the number it returns.
  func fence() -> Int {
    producer += 1
    return producer
  }

  /// A round arrives at the broker. Returns `false` if it is refused, and nil if the broker loses it before it
  /// acknowledges it.
  func published(_ pending: PendingEvents, by producer: Int) -> Bool? {
    guard producer == self.producer else { return false }
    if simulation.fault(0.05) {
      simulation.note("the broker loses a round")
      return nil
    }
    for event in pending.events {
      let task = event.taskID
      let last = events[task]?.map(\.sequence).max() ?? 0
      simulation.check(event.sequence <= last + 1, "event \(event.sequence) follows event \(last)", of: task)
      events[task, default: []].append(event)
      let (former, sequence) = (snapshots[task] ?? nil, event.task?.sequence)
      simulation.check(sequence ?? .max >= former ?? 0, "a snapshot is older than the one before", of: task)
      snapshots[task] = .some(sequence)
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
