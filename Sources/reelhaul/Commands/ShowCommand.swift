import CommandLineKit
import TaskAdvice
import TaskStore
import WorkerOptions

extension Subcommand {
  static let show = Subcommand(
    CommandSpec(
      name: "show", summary: "Show everything about a task", options: [.json] + OptionSpec.reading,
      positionals: [.task],
      examples: [Example("reelhaul show \(Example.task) --json | jq .error", "Why it failed")],
      exits: ExitCode.meanings(.done, .usage, .unreachable, .notFound))
  ) { context in
    let names = try TaskID.parse(context.arguments.positionals)
    return try await Fleet.withStore(context) { store in
      let lookup = TaskLookup(store)
      let task = try await lookup.get(lookup.ids(names)[0])
      let report = try await TaskReport.of(task, in: store)
      if context.wantsJSON {
        context.output.json(report)
      } else {
        for line in TaskDetails.lines(report) { context.output.line(line) }
      }
      return .done
    }
  }
}
