import ReelhaulWorker

/// Two run at once, whatever they are called.
struct Gated: TaskHandler {
  struct Parameters: Codable, Sendable {
    var journal: String
    /// The mark that lets it go on.
    var gate: String
  }
  static let kind = "gated"
  static let aliases = ["formerly-gated"]
  let policy = TaskPolicy(concurrency: 2)

  func run(_ parameters: Parameters, context: TaskContext<NoCheckpoint>) async throws -> NoOutput {
    let journal = Journal(directory: parameters.journal)
    journal.write("begin \(context.task.kind)")
    await journal.wait(for: parameters.gate)
    try? await Task.sleep(for: .milliseconds(50))
    journal.write("end \(context.task.kind)")
    return NoOutput()
  }
}

/// Five steps, each with a checkpoint.
struct Steps: TaskHandler {
  struct Parameters: Codable, Sendable {
    var journal: String
    /// The first owner stays after this step.
    var stay: Int
  }
  struct Checkpoint: Codable, Sendable { var step: Int }
  struct Output: Codable, Sendable { var first: Int, steps: Int }
  static let kind = "steps"

  func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> Output {
    let journal = Journal(directory: parameters.journal)
    let first = context.lastCheckpoint?.step ?? 0
    for step in (first + 1)...5 {
      context.report(done: Int64(step), total: 5)
      try await context.checkpoint(Checkpoint(step: step))
      if context.epoch == 1, step == parameters.stay {
        journal.write("stays")
        await journal.wait(for: "never")
      }
    }
    return Output(first: first, steps: 5)
  }
}

/// Its first owner goes on whatever happens, and tells what its next checkpoint comes to.
struct Zombie: TaskHandler {
  struct Parameters: Codable, Sendable { var journal: String }
  struct Checkpoint: Codable, Sendable { var epoch: Int }
  struct Output: Codable, Sendable { var epoch: Int }
  static let kind = "zombie"

  func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> Output {
    let journal = Journal(directory: parameters.journal)
    guard context.epoch == 1 else {
      journal.write("epoch \(context.epoch) after \(context.lastCheckpoint?.epoch ?? 0)")
      await journal.wait(for: "finish")
      return Output(epoch: context.epoch)
    }
    try await context.checkpoint(Checkpoint(epoch: 1))
    journal.write("stays")
    await journal.wait(for: "go")
    do {
      try await context.checkpoint(Checkpoint(epoch: 100))
      journal.write("recorded")
    } catch {
      journal.write("threw \(type(of: error))")
    }
    return Output(epoch: 1)
  }
}

/// A kind before it was renamed.
struct Resize: TaskHandler {
  struct Parameters: Codable, Sendable { var width: Int }
  struct Output: Codable, Sendable { var by: String, width: Int }
  static let kind = "resize"

  func run(_ parameters: Parameters, context: TaskContext<NoCheckpoint>) async throws -> Output {
    Output(by: "old", width: parameters.width)
  }
}

/// The same kind with its new name, and with a field more.
struct Scale: TaskHandler {
  struct Parameters: Codable, Sendable { var width: Int, quality: Int? }
  struct Output: Codable, Sendable { var by: String, width: Int, quality: Int }
  static let kind = "scale"
  static let aliases = ["resize"]

  func run(_ parameters: Parameters, context: TaskContext<NoCheckpoint>) async throws -> Output {
    Output(by: "new", width: parameters.width, quality: parameters.quality ?? 80)
  }
}

/// Reports as fast as `perSecond` says, for some seconds. To measure what a report costs.
struct Reporter: TaskHandler {
  struct Parameters: Codable, Sendable { var seconds: Int, perSecond: Int }
  static let kind = "reporter"

  func run(_ parameters: Parameters, context: TaskContext<NoCheckpoint>) async throws -> NoOutput {
    let clock = ContinuousClock()
    let start = clock.now
    var reported = 0
    let ticks = parameters.seconds * 100
    for tick in 1...ticks {
      while reported < tick * parameters.perSecond / 100 {
        reported += 1
        context.report(done: Int64(reported), total: Int64(parameters.seconds * parameters.perSecond))
      }
      try await clock.sleep(until: start + .milliseconds(10 * tick))
    }
    return NoOutput()
  }
}
