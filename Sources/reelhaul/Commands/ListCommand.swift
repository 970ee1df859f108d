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
        time (--not-before) or 'retrying' at a time after a failure. --state, --queue, --kind and --host may be given several \
        times: a task must fit one of them. Of --label it must fit all.
        """,
      options: OptionSpec.selection + [.sort, .limit, .cursor, .json] + OptionSpec.reading,
      examples: [
        Example("reelhaul list --state failed --since 2h", "Tasks of the last two hours that have failed"),
        Example(
          "reelhaul list --host example.org --text season-3", "Tasks of a host whose URL, path or id has this text"),
        Example("reelhaul list --json | jq -r '.[].id'", "Only the ids"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let filter = try TaskFilter(context.arguments)
    let (next, shown) = try await Fleet.withStore(context) { store in
      let page = try await store.fullPage(filter)
      if context.wantsJSON {
        context.output.documents(try await TaskReport.of(page.tasks, in: store)) { $0.write(to: &$1) }
      } else if page.tasks.isEmpty {
        context.note("No tasks match.")
      } else {
        context.print(.tasks(page.tasks))
      }
      return (page.next, page.tasks.count)
    }
    if let next {
      let ends = filter.order == .newestFirst ? "newest" : "oldest"
      let these = shown == 1 ? "this is the \(ends) one" : "these are the \(ends) \(shown)"
      context.note(
        "There are more: \(filter.cursor == nil ? these : "these are the next \(shown)"). "
          + "'\(OptionSpec.cursor.spelling) \(next)' continues; \(OptionSpec.limit.spelling) may be up to \(OptionSpec.most)."
      )
    }
    return .done
  }
}

extension TaskFilter {
  /// Throws ``UsageError``.
  init(_ arguments: Arguments) throws(UsageError) {
    try self.init(selection: arguments)
    if text?.isEmpty == true { text = nil }
    order = arguments[.sort].flatMap(TaskOrder.init(rawValue:)) ?? .newestFirst
    limit = Int(arguments.integer(.limit) ?? 100)
    if let text = arguments[.cursor] {
      guard let cursor = TaskCursor(text) else {
        throw UsageError("\(OptionSpec.cursor.spelling) must be what a list before has named, not \"\(text)\"")
      }
      self.cursor = cursor
    }
  }
}

extension OptionSpec {
  fileprivate static let sort = OptionSpec(
    "sort", .choice(TaskOrder.allCases.map(\.rawValue)), valueName: "ORDER",
    help: "-createdAt: the newest first, as without it; createdAt: the oldest first")
  fileprivate static let cursor = OptionSpec(
    "cursor", .text, valueName: "CURSOR", help: "Continue a list: its last line names the cursor")
  fileprivate static let most: Int64 = 10_000
  fileprivate static let limit = OptionSpec(
    "limit", short: "n", .integer(1...most), default: "100", help: "How many tasks at most")
}
