import CommandLineKit
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let operations = Subcommand(
    CommandSpec(
      name: "operations", summary: "List operations on many tasks, or cancel one",
      discussion: """
        A command with --all is an operation, as those of the dashboard and the HTTP API are. 'list' shows the newest \
        100. 'cancel OPERATION' ends one: it sends no further command, and commands that were sent take effect. An \
        operation waits until older ones with another action have ended, if they may touch the same tasks. OPERATION is \
        its id, or the end of it.
        """,
      options: [.json] + OptionSpec.reading,
      positionals: [
        PositionalSpec("ACTION", .optional, kind: .choice(["list", "cancel"]), help: "list or cancel"),
        PositionalSpec("OPERATION", .optional, help: "of cancel: the operation's id, or the end of it"),
      ],
      examples: [
        Example("reelhaul operations", "What runs, and how far it is"),
        Example("reelhaul operations cancel 6d2f0a7e4b11", "Send no further commands"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound))
  ) { context in
    let words = context.arguments.positionals
    guard words.first == "cancel" else {
      guard words.count < 2 else { throw UsageError("list takes no further word") }
      return try await list(context)
    }
    guard words.count == 2 else {
      throw UsageError("which operation? Write it as 'reelhaul operations cancel OPERATION'")
    }
    return try await cancel(words[1], context)
  }

  private static func list(_ context: Context) async throws -> ExitCode {
    let operations = try await Fleet.withStore(context) { try await $0.operations(limit: 100, within: nil) }
    if context.wantsJSON {
      context.output.documents(operations) { $0.write(to: &$1) }
    } else if operations.isEmpty {
      context.note("There are no operations. A command with --all begins one.")
    } else {
      context.print(.operations(operations))
    }
    return .done
  }

  private static func cancel(_ word: String, _ context: Context) async throws -> ExitCode {
    let operation = try await Fleet.withStoreToChange(context) { store in
      guard let operation = try await find(word, in: store),
        let canceled = try await store.cancelOperation(operation.id)
      else {
        throw CommandFailure(.notFound, "there is no operation \(word)", hint: "'reelhaul operations' shows them.")
      }
      return canceled
    }
    guard operation.state == .canceled else {
      throw CommandFailure(.failed, "operation \(operation.id) has ended: it is \(operation.state.rawValue)")
    }
    if context.wantsJSON {
      context.output.document { operation.write(to: &$0) }
    } else {
      context.note("Operation \(operation.id) sends no further command. Those that were sent take effect.")
    }
    return .done
  }

  private static func find(_ word: String, in store: any ControlStore) async throws -> TaskOperation? {
    switch TaskID(word) {
    case .whole(let id): return try await store.operation(id)
    case .ending(let ending):
      let named = try await store.operations(limit: 1000, within: nil).filter { ending.matches($0.id) }
      guard named.count < 2 else {
        throw CommandFailure(.usage, "the ids of several operations end in \(word)", hint: "Give more of its digits.")
      }
      return named.first
    case nil: return nil
    }
  }
}

extension Table {
  fileprivate static func operations(_ operations: [TaskOperation]) -> Table {
    var table = Table([
      .init("OPERATION"), .init("ACTION"), .init("TASKS", shrinks: true), .init("STATE"), .init("MATCHED", right: true),
      .init("APPLIED", right: true), .init("REFUSED", right: true), .init("BY", shrinks: true, leaves: 2),
      .init("BEGUN", leaves: 1),
    ])
    for operation in operations {
      let progress = operation.progress
      table.add([
        "\(operation.id)", operation.action.words, operation.selectionWords,
        operation.waitsFor.map { "waits for \("\($0.id)".suffix(12))" } ?? operation.state.rawValue,
        "\(progress.matched)", "\(progress.applied)", "\(progress.refused)", operation.actor ?? "",
        operation.createdAt.relative,
      ])
    }
    return table
  }
}

extension ControlAction {
  fileprivate var words: String {
    switch self {
    case .prioritize(let priority): "prioritize \(priority)"
    case .remove(files: true): "remove --files"
    default: name
    }
  }
}

extension TaskOperation {
  /// `queue a, b; state failed`
  var selectionWords: String {
    switch selection {
    case .ids: return idCount == 1 ? "1 by its id" : "\(idCount) by their ids"
    case .filter(let filter):
      let conditions: [(name: String, values: [String])] = [
        ("state", filter.states.map(\.rawValue)), ("queue", filter.queues), ("kind", filter.kinds.map(\.rawValue)),
        ("host", filter.hosts), ("code", filter.codes), ("label", filter.labels),
        ("text", filter.text.map { [$0] } ?? []), ("since", filter.after.map { ["\($0)"] } ?? []),
        ("before", filter.before.map { ["\($0)"] } ?? []),
      ]
      let words = conditions.filter { !$0.values.isEmpty }.map { "\($0.name) \($0.values.joined(separator: ", "))" }
      return words.isEmpty ? "all" : words.joined(separator: "; ")
    }
  }
}
