import CommandLineKit
import ReelhaulSystem
import TaskCore
import TaskStore

/// Waits until the fleet has carried out commands (`--wait`). A command has an outcome of its own. The task's state does
/// not tell it: the command may be refused, and the state may have changed again.
struct CommandWait {
  private static let interval: Duration = .milliseconds(100)
  /// After this time a remark says why nothing happens.
  private static let patience: Duration = .seconds(10)

  private static let open = """
    Kafka has the command, but no worker has carried it out: see 'reelhaul workers'. If one could not, it is a dead letter: \
    see 'reelhaul dead-letters'. Ctrl-C ends the wait only.
    """

  private let store: any DetailReader
  private let context: Context

  init(_ store: any DetailReader, _ context: Context) {
    self.store = store
    self.context = context
  }

  /// Throws ``ExitCode/refused`` if a worker has refused one of the commands.
  func run(_ commands: [Command]) async throws {
    let tasks = commands.map(\.taskID)
    let sentence: @Sendable () -> String = { WatchEnd.sentence(tasks, held: [], awaited: .effect) }
    await StopSignal.telling(context, sentence)
    try await carriedOut(commands, PatientQuestions(sentence))
  }

  func carriedOut(_ commands: [Command], _ questions: PatientQuestions) async throws {
    var questions = questions
    var open: [UniqueID: UniqueID] = [:]
    for case .control(let command) in commands { open[command.id] = command.taskID }
    var stopping: [UniqueID] = []
    var refusals: [(code: String, sentence: String)] = []
    let start = BootInstant.now
    var isTold = false
    while true {
      for (id, outcome) in try await questions.ask(context.note, { try await store.outcomes(of: Array(open.keys)) }) {
        guard let task = open.removeValue(forKey: id) else { continue }
        switch outcome {
        case .applied: stopping.append(task)
        case .refused("unknown_task", let reason): refusals.append(("unknown_task", reason))
        case .refused(let code, let reason): refusals.append((code, "task \(task): \(reason)"))
        }
      }
      // A run that was asked to stop takes a moment.
      stopping = try await questions.ask(context.note) { Array(try await store.stopping(stopping).keys) }
      if open.isEmpty, stopping.isEmpty { break }
      if !isTold, !open.isEmpty, BootInstant.now - start > Self.patience {
        context.note(Self.open)
        isTold = true
      }
      try await Task.sleep(for: Self.interval)
    }
    guard !refusals.isEmpty else { return }
    let isMissing = refusals.allSatisfy { $0.code == "unknown_task" }
    throw CommandFailure(
      isMissing ? .notFound : .refused, refusals.map(\.sentence).sorted().joined(separator: "\n"),
      hint: "The command was refused when a worker read it. 'reelhaul show' shows a task's state.")
  }
}
