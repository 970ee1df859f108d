import CommandLineKit
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let list = Subcommand(
    CommandSpec(
      name: "list", synonyms: ["ls", "ps"], summary: "List tasks, the newest first",
      discussion: """
        --state takes the words in column STATE. 'queued' lists all queued tasks, including those that are 'scheduled' for a \
        time (--not-before) or 'retrying' at a time after a failure.
        """,
      options: [.state, .inQueue, .limit, .json] + OptionSpec.reading,
      examples: [
        Example("reelhaul list --state failed", "Tasks that have failed"),
        Example("reelhaul list --json | jq -r '.[].id'", "Only the ids"),
      ],
      exits: ExitCode.meanings(.done, .usage, .unreachable))
  ) { context in
    let limit = Int(context.arguments.integer(.limit) ?? 100)
    let filter = TaskFilter(
      state: context.arguments[.state].flatMap { TaskStatus(rawValue: $0) }, queue: context.arguments[.inQueue],
      limit: limit + 1)
    let hasMore = try await Fleet.withStore(context) { store in
      let found = try await store.tasks(filter)
      let tasks = Array(found.prefix(limit))
      if context.wantsJSON {
        context.output.json(try await TaskReport.of(tasks, in: store))
      } else if tasks.isEmpty {
        context.note("No tasks match.")
      } else {
        context.print(.tasks(tasks))
      }
      return found.count > limit
    }
    if hasMore {
      let option = OptionSpec.limit
      let shown = limit == 1 ? "this is the newest one" : "these are the newest \(limit)"
      context.note("There are more: \(shown). \(option.spelling) may be up to \(OptionSpec.most).")
    }
    return .done
  }
}

extension OptionSpec {
  fileprivate static let state = OptionSpec(
    "state", short: "s", .choice(TaskStatus.allCases.map(\.rawValue)), valueName: "STATE",
    help: "Only tasks in this state: \(TaskStatus.allCases.map(\.rawValue).joined(separator: ", "))")
  fileprivate static let inQueue = OptionSpec(
    "queue", short: "q", .text, valueName: "NAME", help: "Only tasks of this queue")
  fileprivate static let most: Int64 = 10_000
  fileprivate static let limit = OptionSpec(
    "limit", short: "n", .integer(1...most), default: "100", help: "How many tasks at most")
}
