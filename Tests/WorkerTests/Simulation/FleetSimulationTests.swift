import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import Testing
import WorkerCore

/// Several workers, the real decisions, virtual time; processes killed, frozen between any two steps for longer than a
/// lease, and cut off, clocks that run slow, stand still and jump, messages late, lost and doubled, a disk that loses what
/// was not synced and a broker that loses what it has not acknowledged.
///
/// The invariants are checked with every step. The one that breaks first ends the run of its seed, and prints the seed and
/// the last steps that led there. Two environment variables choose the seeds: `REELHAUL_SIMULATION_SEEDS=400` runs 400
/// of them instead of 60, and `REELHAUL_SIMULATION_SEED=17` that one alone. They begin at 100: in the sixty from there, every
/// planted bug of the simulation is noticed.
@MainActor @Suite struct FleetSimulationTests {
  nonisolated static let seeds: Range<UInt64> = {
    let environment = ProcessEnvironment.all
    if let seed = environment["REELHAUL_SIMULATION_SEED"].flatMap(UInt64.init) { return seed..<seed + 1 }
    return 100..<100 + (environment["REELHAUL_SIMULATION_SEEDS"].flatMap(UInt64.init) ?? 60)
  }()

  @Test("every task ends, once and whole, with one owner at a time and no event lost", arguments: seeds)
  func everyTaskArrivesOnce(seed: UInt64) async throws {
    let simulation = Simulation(seed: seed)
    try await setLimits(simulation.store)
    let log = CommandLog(simulation)
    let fleet = FleetObserver(simulation)
    let workers = (0..<3).map { SimulatedWorker(simulation, log: log, fleet: fleet, index: $0) }
    for worker in workers { try await worker.start() }

    var tasks: [UniqueID] = []
    for index in 0..<40 {
      let spec = TaskSpec(
        id: UniqueID(high: 1, low: UInt64(index)), kind: .download, source: "http://origin/\(index)",
        destination: "storage://default/\(index)", queue: index.isMultiple(of: 4) ? "narrow" : "default")
      tasks.append(spec.id)
      simulation.after(simulation.milliseconds(0...20_000)) { [self] in
        log.produce([.submit(spec)])
        meddle(with: spec.id, simulation, log)
      }
    }
    for worker in workers { trouble(worker, simulation) }
    cutPower(workers, simulation, fleet)
    if seed.isMultiple(of: 4) { setStoreClock(simulation) }

    try await simulation.run(until: BootInstant(nanoseconds: 90_000_000_000))

    // The faults end, and the fleet recovers by itself.
    simulation.isFaulty = false
    try await simulation.run(until: BootInstant(nanoseconds: 1_800_000_000_000)) {
      guard log.isDrained else { return false }
      let counts = try await simulation.store.counts()
      let resting = counts.filter { $0.key.isFinal || $0.key == .paused }.values.reduce(0, +)
      guard resting == tasks.count else { return false }
      return try await simulation.store.pendingRows() == nil
    }
    simulation.check(log.isDrained, "commands are left")
    let rows = try await simulation.store.pendingRows()
    simulation.check(rows == nil, "not every event is relayed")
    #expect(fleet.acts >= tasks.count)
    // The file of a succeeded task exists, whatever happens.
    simulation.disk.cutPower()
    for task in tasks {
      let document = try #require(try await simulation.store.task(task))
      simulation.check(document.state.isFinal || document.state == .paused, "it is \(document.state)", of: task)
      if document.state == .succeeded { fleet.published(task) }
      let history = fleet.history(of: task)
      simulation.check(
        history.map(\.sequence) == Array(1...document.sequence), "its events are \(history.map(\.sequence))", of: task)
      simulation.check(fleet.snapshots[task] == document.sequence, "its last snapshot is not the newest", of: task)
      simulation.check(history.count { $0.kind == .submitted } == 1, "it was not submitted once", of: task)
      let successes = history.count { $0.kind == .succeeded }
      simulation.check(
        successes == (document.state == .succeeded ? 1 : 0), "it succeeds \(successes) times", of: task)
    }
    try simulation.verify()
  }

  @Test("a seed takes the same steps each time")
  func aSeedTakesTheSameSteps() async throws {
    func steps() async throws -> String {
      let simulation = Simulation(seed: 1)
      let log = CommandLog(simulation)
      let fleet = FleetObserver(simulation)
      let workers = (0..<3).map { SimulatedWorker(simulation, log: log, fleet: fleet, index: $0) }
      for worker in workers { try await worker.start() }
      for worker in workers { trouble(worker, simulation) }
      cutPower(workers, simulation, fleet)
      for index in 0..<20 {
        let spec = TaskSpec(
          id: UniqueID(high: 1, low: UInt64(index)), kind: .download, source: "http://origin/",
          destination: "storage://default/\(index)")
        log.produce([.submit(spec)])
        meddle(with: spec.id, simulation, log)
      }
      try await simulation.run(until: BootInstant(nanoseconds: 40_000_000_000))
      return simulation.lastSteps
    }
    let (first, second) = (try await steps(), try await steps())
    #expect(first == second)
    #expect(!first.isEmpty)
  }

  /// Below what the workers could run together.
  private func setLimits(_ store: MemoryStore) async throws {
    try await store.setLimit(.total, name: "", to: 3 * SimulatedWorker.concurrency - 2)
    try await store.setLimit(.queue, name: "narrow", to: 2)
  }

  /// The whole fleet is stopped while it works, in half of the runs right after one worker died.
  @Test("the last worker to drain leaves no event behind", arguments: seeds)
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
    let rows = try await simulation.store.pendingRows()
    simulation.check(rows == nil, "not every event is relayed")
    for task in tasks {
      guard let document = try await simulation.store.task(task) else { continue }
      let sequences = fleet.history(of: task).map(\.sequence)
      simulation.check(sequences == Array(1...document.sequence), "its events are \(sequences)", of: task)
    }
    try simulation.verify()
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
    simulation.after(simulation.milliseconds(3000...20_000)) { [self] in
      guard simulation.isFaulty else { return }
      // What is frozen wakes up again, most often: after others have taken over what it had.
      if worker.isStopped, !simulation.fault(0.1) { return trouble(worker, simulation) }
      switch Int.random(in: 0..<7, using: &simulation.random) {
      case 0...1:
        worker.kill()
        worker.restart()
      case 2: worker.stop(for: simulation.freeze)
      case 3...5: worker.cutOff(for: simulation.freeze)
      default: worker.terminate(thenRestart: true)
      }
      trouble(worker, simulation)
    }
  }

  /// Now and then the machine goes down that has the disk and the workers.
  private func cutPower(_ workers: [SimulatedWorker], _ simulation: Simulation, _ fleet: FleetObserver) {
    simulation.after(simulation.milliseconds(20_000...80_000)) { [self] in
      guard simulation.isFaulty else { return }
      simulation.disk.cutPower()
      fleet.powerWasCut()
      for worker in workers {
        worker.kill()
        worker.restart()
      }
      cutPower(workers, simulation, fleet)
    }
  }

  /// Now and then the store's clock is set, back or forward.
  private func setStoreClock(_ simulation: Simulation) {
    simulation.after(simulation.milliseconds(10_000...60_000)) { [self] in
      guard simulation.isFaulty else { return }
      simulation.jumpStoreClock(by: simulation.milliseconds(-20_000...20_000))
      setStoreClock(simulation)
    }
  }
}
