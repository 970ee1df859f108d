import CommandLineKit
import ControlAPI
import ReelhaulClient
import ReelhaulCodec
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
    // Once it is begun, it waits as long as a broker's fail-over takes.
    let client = try Fleet.client(context.arguments, kafkaPatience: "60000")
    do {
      try await Fleet.reachKafka(context.arguments)
      let ended = try await Fleet.withStoreToChange(context) { store in
        // Whether it exists must be known: others may carry it out already.
        var questions = PatientQuestions()
        let created = try await questions.ask(context.note) { try await store.createOperation(operation) }
        return try await carryOut(created, store, client)
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
    let loop = EventLoop(name: "operation")
    defer { loop.shutdown() }
    let driver = OperationDriver(
      store: store, send: { try await client.send($0) }, loop: loop, only: operation.id)
    let sentence =
      "It goes on where 'reelhaul serve' or 'reelhaul up' runs; 'reelhaul operations cancel \(operation.id)' ends it."
    // Every step can be repeated by whoever goes on.
    let stop = await StopSignal.telling(context) {
      "Interrupted before the operation \(operation.id) had ended. \(sentence)"
    }
    var questions = PatientQuestions()
    var awaited: TaskOperation.Awaited?
    do {
      while true {
        let moved = try await questions.ask(context.note) { try await driver.turn() }
        let now = try await questions.ask(context.note) { try await store.operation(operation.id) }
        guard let now, now.finishedAt == nil else {
          await stop.close()
          return now ?? operation
        }
        if let older = now.waitsFor, older != awaited {
          context.note(
            """
            Waits until operation \(older.id) (\(older.action.name)) has ended, which may touch the same tasks; \
            'reelhaul operations cancel \(older.id)' ends it.
            """)
        }
        awaited = now.waitsFor
        if !moved { try await loop.sleep(for: .milliseconds(100)) }
      }
    } catch {
      context.note("The operation \(operation.id) has begun, and has not ended. \(sentence)")
      throw error
    }
  }

  private func report(_ operation: TaskOperation) throws -> ExitCode {
    if context.wantsJSON {
      context.output.document { operation.write(to: &$0) }
    } else {
      let progress = operation.progress
      let reasons = progress.refusals.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
      let refused = progress.refused > 0 ? ", \(progress.refused) refused (\(reasons.joined(separator: ", ")))" : ""
      let end = operation.state == .canceled ? "; it was canceled" : ""
      context.note("\(action.name): \(progress.matched) matched, \(progress.applied) applied\(refused)\(end)")
    }
    if let error = operation.error { throw CommandFailure(.failed, error) }
    return operation.state == .done ? .done : .failed
  }
}

extension OperationFilter {
  init(_ arguments: Arguments) throws(UsageError) {
    let filter = try TaskFilter(selection: arguments)
    // Every task has the empty text. In a script it is a variable that is not set.
    guard filter.text?.isEmpty != true else {
      throw UsageError(
        "\(OptionSpec.withText.spelling) must not be empty",
        hint: "\(OptionSpec.everything.spelling) without it takes all tasks.")
    }
    self.init()
    states = filter.states.sorted { $0.rawValue < $1.rawValue }
    queues = filter.queues.sorted()
    kinds = filter.kinds.sorted { $0.rawValue < $1.rawValue }
    hosts = filter.hosts.sorted()
    codes = filter.codes.sorted()
    labels = arguments.all(.withLabel)
    text = filter.text
    after = filter.createdAfter
    before = filter.createdBefore
    // Every task without a remote server has the empty host.
    guard !hosts.contains("") else {
      throw UsageError("\(OptionSpec.atHost.spelling) must not be empty")
    }
    do throws(DecodingFailure) {
      _ = try JSONReader.read(JSONWriter.write { write(to: &$0) }) { reader throws(DecodingFailure) in
        try OperationFilter(from: &reader)
      }
    } catch {
      throw UsageError("these options cannot be kept as an operation: \(error)")
    }
  }
}

extension OptionSpec {
  private static let heading = "Many tasks"
  static let everything = OptionSpec(
    "all", .flag, group: heading, help: "Every task that matches these options, instead of tasks by their ids")
  static let dryRun = OptionSpec(
    "dry-run", .flag, group: heading, help: "With --all: only show how many tasks match, and which")

  static let operation =
    [everything, dryRun]
    + selection.map { option in
      var option = option
      option.group = heading
      return option
    }
}
