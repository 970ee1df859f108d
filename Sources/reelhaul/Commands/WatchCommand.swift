import CommandLineKit
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let watch = Subcommand(
    CommandSpec(
      name: "watch", summary: "Follow tasks while they run",
      discussion: """
        With names, shows their live bars until they have ended. Without names, a terminal becomes a live list of the unfinished tasks: \
        keys move, find, open, pause, resume, retry and cancel ('?' lists them), which needs --kafka as well. On a pipe, prints a line for \
        each change that it sees, looking four times a second at the newest 500 tasks of each state; with --json a task document for each change. \
        GET /v1/events tells every change of a busy fleet. --once prints the list, or the named tasks, and ends.
        """,
      options: [.group, .containing, .once, .json] + OptionSpec.producing,
      positionals: [
        PositionalSpec("TASK", .many, help: "the tasks' ids, or their ends; all unfinished ones by default")
      ],
      examples: [
        Example("reelhaul watch", "All unfinished tasks, live"),
        Example("reelhaul watch --state failed --once", "The failed tasks now"),
        Example("reelhaul watch $(reelhaul download https://example.com/film.mp4)", "One task until its end"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound))
  ) { context in
    let names = try TaskID.parse(context.arguments.positionals)
    if !names.isEmpty {
      try context.arguments.refuse([.group, .containing], "selects from the list, and not from named tasks")
    }
    return try await Fleet.withStore(context) { store in
      let lookup = TaskLookup(store)
      let ids = try await lookup.ids(names)
      guard !ids.isEmpty else { return try await watchAll(store, context) }
      var known: [TaskDocument] = []
      for id in ids { known.append(try await lookup.get(id)) }
      if context.arguments[flag: .once] {
        try await printOnce(known, in: store, context)
        return .done
      }
      return try await TaskWatch(store, context).run(ids, known: known, until: \.state.isFinal)
        .exit(context, failing: { $0.state != .succeeded })
    }
  }
}

/// Without names: a list, live on a terminal.
private func watchAll(_ store: any TaskReader & FleetReader & HookStore, _ context: Context) async throws -> ExitCode {
  var list = WatchList(
    group: context.arguments[.group].flatMap { WatchList.Group(rawValue: $0) } ?? .unfinished,
    text: context.arguments[.containing] ?? "")
  var source = WatchSource(store)
  if context.arguments[flag: .once] {
    let (tasks, more) = try await source.tasks(list.group)
    list.update(tasks, more: more)
    try await printOnce(list.shown, in: store, context)
    if !more.isEmpty { context.note("\(WatchSource.limit): 'reelhaul list' shows all.") }
    return .done
  }
  if !context.wantsJSON, context.terminal.isInteractive, let screen = RawTerminal() {
    var watch = WatchScreen(store, source, context, screen, list)
    return try await watch.run()
  }
  return try await TaskWatch(store, context).runForever(list, source)
}

private func printOnce(
  _ tasks: [TaskDocument], in store: any TaskReader & FleetReader, _ context: Context
) async throws {
  if context.wantsJSON {
    context.output.documents(try await TaskReport.of(tasks, in: store)) { $0.write(to: &$1) }
  } else if tasks.isEmpty {
    context.note("No tasks match.")
  } else {
    context.print(.tasks(tasks))
  }
}

extension OptionSpec {
  fileprivate static let group = OptionSpec(
    "state", short: "s", .choice(WatchList.Group.allCases.map(\.rawValue)), valueName: "GROUP", default: "unfinished",
    help: "Without names: which tasks, \(WatchList.Group.allCases.map(\.rawValue).joined(separator: ", "))")
  fileprivate static let containing = OptionSpec(
    "text", .text,
    help: "Without names: only tasks whose title, URLs, queue, kind, state or id contains this")
  fileprivate static let once = OptionSpec("once", .flag, help: "Print the tasks once instead of following them")
}
