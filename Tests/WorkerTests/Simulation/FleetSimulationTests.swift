import ReelhaulSystem
import TaskCore
import TaskStore
import Testing
import WorkerCore

/// Simulates several workers with the real decision types in virtual time. Processes are killed, frozen between any two
/// steps and cut off. Clocks run slow, stand still and jump. Messages are late, lost and doubled. A disk loses bytes
/// that are not synced, and a broker loses messages that it has not acknowledged.
@MainActor @Suite struct FleetSimulationTests {
  @Test(
    "every task ends, once and whole, with one owner at a time and no event lost", arguments: 0..<40 as Range<UInt64>)
  func everyTaskArrivesOnce(seed: UInt64) async throws {
    let simulation = Simulation(seed: seed)
    let log = CommandLog(simulation)
    let fleet = FleetObserver(simulation)
    let workers = (0..<3).map { SimulatedWorker(simulation, log: log, fleet: fleet, index: $0) }
    for worker in workers { try await worker.start() }

    var tasks: [UniqueID] = []
    for index in 0..<40 {
      let spec = TaskSpec(
        id: UniqueID(high: 1, low: UInt64(index)), kind: .download, source: "http://origin/\(index)",
        destination: "storage://default/\(index)")
      tasks.append(spec.id)
      simulation.after(simulation.milliseconds(0...20_000)) { [self] in
        log.produce([.submit(spec)])
        meddle(with: spec.id, simulation, log)
      }
    }
    for worker in workers { trouble(worker, simulation) }
    cutPower(workers, simulation)

    try await simulation.run(until: BootInstant(nanoseconds: 60_000_000_000))
    #expect(try await simulation.store.audit() == [])

    // The faults end, and the fleet recovers by itself.
    simulation.isFaulty = false
    try await simulation.run(until: BootInstant(nanoseconds: 1_800_000_000_000)) {
      guard log.isDrained else { return false }
      let counts = try await simulation.store.counts()
      let resting = counts.filter { $0.key.isFinal || $0.key == .paused }.values.reduce(0, +)
      guard resting == tasks.count else { return false }
      return try await simulation.store.pendingRows() == nil
    }
    #expect(log.isDrained)
    #expect(try await simulation.store.audit() == [])
    #expect(try await simulation.store.pendingRows() == nil, "every event is relayed")
    #expect(fleet.acts >= tasks.count)
    // The file of a succeeded task exists, whatever happens.
    simulation.disk.cutPower()
    for task in tasks {
      let document = try #require(try await simulation.store.task(task))
      #expect(document.state.isFinal || document.state == .paused, "\(task) is \(document.state)")
      if document.state == .succeeded { fleet.published(task) }
      let history = fleet.history(of: task)
      #expect(history.map(\.sequence) == Array(1...document.sequence), "no event is lost, none is out of order")
      #expect(fleet.snapshots[task] == document.sequence, "the last snapshot is the newest")
      #expect(history.count { $0.kind == .submitted } == 1)
      #expect(history.count { $0.kind == .succeeded } == (document.state == .succeeded ? 1 : 0))
    }
  }

  /// The whole fleet is stopped while it works, in half of the runs right after one worker died.
  @Test("the last worker to drain leaves no event behind", arguments: 0..<40 as Range<UInt64>)
  func theLastToDrainLeavesNoEventBehind(seed: UInt64) async throws {
    let simulation = Simulation(seed: seed)
    simulation.isFaulty = false
    let log = CommandLog(simulation)
    let fleet = FleetObserver(simulation)
    let workers = (0..<3).map { SimulatedWorker(simulation, log: log, fleet: fleet, index: $0) }
    for worker in workers { try await worker.start() }
    let tasks = (0..<40).map { UniqueID(high: 1, low: $0) }
    for task in tasks {
      simulation.after(simulation.milliseconds(0...3000)) {
        let spec = TaskSpec(
          id: task, kind: .download, source: "http://origin/", destination: "storage://default/\(task)")
        log.produce([.submit(spec)])
      }
    }
    let isBereft = seed.isMultiple(of: 2)
    simulation.after(simulation.milliseconds(500...3000)) {
      if isBereft { workers[0].kill() } else { workers[0].terminate() }
      for worker in workers.dropFirst() {
        simulation.after(simulation.milliseconds(10...60)) { worker.terminate() }
      }
    }
    try await simulation.run(until: BootInstant(nanoseconds: 60_000_000_000))

    #expect(workers.dropFirst(isBereft ? 1 : 0).allSatisfy { $0.exitCode == 0 })
    #expect(try await simulation.store.pendingRows() == nil)
    for task in tasks {
      guard let document = try await simulation.store.task(task) else { continue }
      #expect(fleet.history(of: task).map(\.sequence) == Array(1...document.sequence))
    }
  }

  /// Pauses and resumes some tasks and cancels others, whatever they do at that moment.
  private func meddle(with task: UniqueID, _ simulation: Simulation, _ log: CommandLog) {
    func send(_ action: ControlAction, after delay: Duration) {
      let id = UniqueID(high: simulation.random.next(), low: simulation.random.next())
      simulation.after(delay) { log.produce([.control(.init(id: id, taskID: task, action: action))]) }
    }
    if simulation.fault(0.2) {
      simulation.after(simulation.milliseconds(10...8000)) { simulation.sources.replace(task) }
    }
    switch Int.random(in: 0..<5, using: &simulation.random) {
    case 0:
      send(.pause, after: simulation.milliseconds(10...5000))
      send(.resume, after: simulation.milliseconds(6000...9000))
    case 1: send(.cancel, after: simulation.milliseconds(10...8000))
    default: break
    }
  }

  /// From time to time, kills, freezes, cuts off or drains a worker.
  private func trouble(_ worker: SimulatedWorker, _ simulation: Simulation) {
    simulation.after(simulation.milliseconds(1000...15_000)) { [self] in
      guard simulation.isFaulty else { return }
      switch Int.random(in: 0..<7, using: &simulation.random) {
      case 0...1:
        worker.kill()
        worker.restart()
      case 2...3: worker.stop(for: simulation.milliseconds(100...40_000))
      case 4...5: worker.cutOff(for: simulation.milliseconds(100...40_000))
      default: worker.terminate(thenRestart: true)
      }
      trouble(worker, simulation)
    }
  }

  /// From time to time, the machine with the disk and all workers loses its power.
  private func cutPower(_ workers: [SimulatedWorker], _ simulation: Simulation) {
    simulation.after(simulation.milliseconds(5000...40_000)) { [self] in
      guard simulation.isFaulty else { return }
      simulation.disk.cutPower()
      for worker in workers {
        worker.kill()
        worker.restart()
      }
      cutPower(workers, simulation)
    }
  }
}
