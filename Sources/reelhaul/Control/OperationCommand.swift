import CommandLineKit
import ControlAPI
import ReelhaulClient
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

/// A command for everything that matches (`--all`): an operation, which this program works off itself. If it is
/// interrupted, a process that serves the API goes on.
struct OperationCommand {
  private let action: ControlAction
  private let context: Context

  init(_ action: ControlAction, _ context: Context) {
    self.action = action
    self.context = context
  }

  func run() async throws -> ExitCode {
    guard context.arguments.positionals.isEmpty else {
      throw UsageError("--all means every task that matches: name no tasks beside it")
    }
    let operation = TaskOperation(
      id: .make(), action: action, selection: .filter(try OperationFilter(context.arguments)), actor: CommandActor.name,
      createdAt: Timestamp(microseconds: Clocks.realtimeMicroseconds()))
    guard !context.arguments[flag: .dryRun] else {
      return try await Fleet.withStore(context) { try await preview(operation, in: $0) }
    }
    let client = try Fleet.client(context.arguments)
    do {
      let ended = try await Fleet.withStore(context) { store in
        try await carryOut(try await store.createOperation(operation), store, client)
      }
      await client.close()
      return try report(ended)
    } catch {
      await client.close(within: .zero)
      throw error
    }
  }

  private func preview(_ operation: TaskOperation, in store: any ControlStore) async throws -> ExitCode {
    let preview = try await OperationPreview.of(operation, in: store)
    let known = try await store.tasks(preview.examples)
    let tasks = preview.examples.compactMap { known[$0] }
    if context.wantsJSON {
      let reports = try await TaskReport.of(tasks, in: store)
      context.output.document { preview.write(reports, to: &$0) }
      return .done
    }
    if !tasks.isEmpty { context.print(.tasks(tasks)) }
    let count = "\(preview.isAtLeast ? "at least " : "")\(preview.count)"
    let others = preview.impossible > 0 ? " \(preview.impossible) more match, but their state does not allow it." : ""
    let shown = preview.count > tasks.count ? " The newest \(tasks.count) are above." : ""
    context.note("\(action.name) would go to \(count) \(preview.count == 1 ? "task" : "tasks").\(shown)\(others)")
    return .done
  }

  /// Works on the operation until it has ended, here or elsewhere.
  private func carryOut(
    _ operation: TaskOperation, _ store: any ControlStore, _ client: ReelhaulClient
  ) async throws -> TaskOperation {
    let stop = StopSignal()
    let loop = EventLoop(name: "operation")
    defer { loop.shutdown() }
    let driver = OperationDriver(
      store: store, send: { try await client.send($0) }, loop: loop, only: operation.id)
    let sentence =
      "It goes on where 'reelhaul serve' or 'reelhaul up' runs; POST /v1/operations/\(operation.id)/cancel ends it."
    let work = Task {
      var questions = PatientQuestions { sentence }
      while true {
        let moved = try await questions.ask(context.note) { try await driver.turn() }
        guard let now = try await questions.ask(context.note, { try await store.operation(operation.id) })
        else { return operation }
        if now.finishedAt != nil { return now }
        if !moved { try await loop.sleep(for: .milliseconds(100)) }
      }
    }
    stop.onStop { work.cancel() }
    do {
      return try await work.value
    } catch  where work.isCancelled {
      throw CommandFailure(
        .failed, "interrupted before the operation \(operation.id) had ended", hint: sentence)
    }
  }

  private func report(_ operation: TaskOperation) throws -> ExitCode {
    if context.wantsJSON {
      context.output.document { operation.write(to: &$0) }
    } else {
      let progress = operation.progress
      let reasons = progress.refusals.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
      let refused = progress.refused > 0 ? ", \(progress.refused) refused (\(reasons.joined(separator: ", ")))" : ""
      context.note("\(action.name): \(progress.matched) matched, \(progress.applied) applied\(refused)")
    }
    if let error = operation.error { throw CommandFailure(.failed, error) }
    return operation.state == .done ? .done : .failed
  }
}

extension OperationFilter {
  init(_ arguments: Arguments) throws(UsageError) {
    self.init()
    states = arguments.all(.states).compactMap { TaskStatus(rawValue: $0) }
    queues = arguments.all(.queues)
    kinds = arguments.all(.kinds).map(TaskKind.init(rawValue:))
    hosts = arguments.all(.hosts).map { $0.lowercased() }
    codes = arguments.all(.codes)
    labels = arguments.all(.withLabels)
    _ = try TaskFilter.labels(arguments, .withLabels)
    after = try TaskFilter.time(arguments, .createdSince)
    before = try TaskFilter.time(arguments, .createdBefore)
    text = arguments[.matching]
    // Every task has the empty text. In a script it is a variable that is not set.
    guard text?.isEmpty != true else {
      throw UsageError(
        "\(OptionSpec.matching.spelling) must not be empty",
        hint: "\(OptionSpec.everything.spelling) without it takes all tasks.")
    }
  }
}

extension OptionSpec {
  static let everything = OptionSpec(
    "all", .flag, group: "Many tasks", help: "Every task that matches, instead of tasks by their ids")
  static let dryRun = OptionSpec(
    "dry-run", .flag, group: "Many tasks", help: "With --all: only show how many tasks match, and which")
  static let states = OptionSpec(
    "state", short: "s", .choice(TaskStatus.allCases.map(\.rawValue)), valueName: "STATE", repeatable: true,
    group: "Many tasks", help: "With --all: only tasks in this state, or in one of these")
  static let queues = OptionSpec(
    "queue", short: "q", .text, valueName: "NAME", repeatable: true, group: "Many tasks",
    help: "With --all: only tasks of this queue, or of one of these")
  static let kinds = OptionSpec(
    "kind", .text, valueName: "KIND", repeatable: true, group: "Many tasks",
    help: "With --all: only tasks of this kind, or of one of these")
  static let hosts = OptionSpec(
    "host", .text, valueName: "HOST", repeatable: true, group: "Many tasks",
    help: "With --all: only tasks of this host, or of one of these")
  static let codes = OptionSpec(
    "code", .text, valueName: "CODE", repeatable: true, group: "Many tasks",
    help: "With --all: only tasks whose last error has this code, or one of these")
  static let withLabels = OptionSpec(
    "label", .text, valueName: "K=V", repeatable: true, group: "Many tasks",
    help: "With --all: only tasks with this label, and with all of them; K alone for any value")
  static let matching = OptionSpec(
    "match", .text, valueName: "TEXT", group: "Many tasks",
    help: "With --all: only tasks with this text in their id, source or destination")
  static let createdSince = OptionSpec(
    "since", .text, valueName: "TIME", group: "Many tasks",
    help: "With --all: only tasks that were created then or later: 2026-01-31T20:00:00Z, or how long ago: 2h, 1d12h")
  static let createdBefore = OptionSpec(
    "before", .text, valueName: "TIME", group: "Many tasks",
    help: "With --all: only tasks that were created before that time")

  static let operation: [OptionSpec] = [
    .everything, .dryRun, .states, .queues, .kinds, .hosts, .codes, .withLabels, .matching, .createdSince,
    .createdBefore,
  ]
}
