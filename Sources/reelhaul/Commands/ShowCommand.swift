import CommandLineKit

extension Subcommand {
  static let show = Subcommand(
    CommandSpec(
      name: "show", summary: "Show all that is known of a task", options: [.json] + OptionSpec.reading,
      positionals: [.task],
      examples: [Example("reelhaul show 0199… --json | jq .error", "Why it failed")],
      exits: ExitCode.meanings(.done, .usage, .unreachable, .notFound))
  ) { context in
    let id = try TaskID.parse(context.arguments.positionals)[0]
    let task = try await Fleet.withStore(context) { try await TaskLookup($0).get(id) }
    if context.wantsJSON {
      context.output.json(task)
    } else {
      for line in TaskDetails.lines(task) { context.output.line(line) }
    }
    return .done
  }
}
