import CommandLineKit
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let list = Subcommand(
    CommandSpec(
      name: "list", synonyms: ["ls", "ps"], summary: "List tasks, the newest first",
      discussion: """
        --state takes the words that STATE shows. 'queued' lists all that are queued: also those that are 'scheduled' for a \
        time (--not-before) and those that are 'retrying' at one, after something went wrong.
        """,
      options: [.state, .inQueue, .limit, .json] + OptionSpec.reading,
      examples: [
        Example("reelhaul list --state failed", "What went wrong"),
        Example("reelhaul list --json | jq -r '.[].id'", "The ids alone"),
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
        context.note("There are no such tasks.")
      } else {
        context.print(.tasks(tasks))
      }
      return found.count > limit
    }
    if hasMore {
      let option = OptionSpec.limit
      let shown = limit == 1 ? "this is the newest one" : "these are the newest \(limit)"
      context.note("There are more: \(shown). \(option.spelling) takes up to \(OptionSpec.most).")
    }
    return .done
  }
}

extension OptionSpec {
  fileprivate static let state = OptionSpec(
    "state", short: "s", .choice(TaskStatus.allCases.map(\.rawValue)), valueName: "STATE",
    help: "Only those in a state: \(TaskStatus.allCases.map(\.rawValue).joined(separator: ", "))")
  fileprivate static let inQueue = OptionSpec(
    "queue", short: "q", .text, valueName: "NAME", help: "Only those of a queue")
  fileprivate static let most: Int64 = 10_000
  fileprivate static let limit = OptionSpec(
    "limit", short: "n", .integer(1...most), default: "100", help: "At most so many")
}
