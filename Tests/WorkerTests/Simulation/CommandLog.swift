import TaskCore

/// The `commands` topic. Batches are handed out until a worker commits them, and sometimes again after that.
@MainActor final class CommandLog {
  struct Batch {
    var commands: [Command]
    var isCommitted = false
    var holder: Int?
  }

  private let simulation: Simulation
  private(set) var batches: [Batch] = []

  init(_ simulation: Simulation) {
    self.simulation = simulation
  }

  func produce(_ commands: [Command]) {
    batches.append(Batch(commands: commands))
  }

  /// The next batch for a worker: the oldest one that no worker has, or rarely one that another worker had before.
  func next(for worker: Int) -> Int? {
    if !batches.isEmpty, simulation.fault(0.1) { return batches.indices.randomElement(using: &simulation.random) }
    guard let index = batches.firstIndex(where: { !$0.isCommitted && $0.holder == nil }) else { return nil }
    batches[index].holder = worker
    return index
  }

  func commit(_ index: Int) {
    batches[index].isCommitted = true
  }

  /// The rebalance of the group after a member is gone.
  func release(_ worker: Int) {
    for index in batches.indices where batches[index].holder == worker { batches[index].holder = nil }
  }

  var isDrained: Bool { batches.allSatisfy(\.isCommitted) }
}
