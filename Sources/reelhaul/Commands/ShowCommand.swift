import CommandLineKit
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let show = Subcommand(
    CommandSpec(
      name: "show", summary: "Show everything about a task", options: [.history, .json] + OptionSpec.reading,
      positionals: [.task],
      examples: [
        Example("reelhaul show \(Example.task) --json | jq .error", "Why it failed"),
        Example("reelhaul show \(Example.task) --history", "Its attempts, and who paused, resumed or retried it"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound))
  ) { context in
    let names = try TaskID.parse(context.arguments.positionals)
    return try await Fleet.withStore(context) { store in
      let lookup = TaskLookup(store)
      let task = try await lookup.get(lookup.ids(names)[0])
      if context.arguments[flag: .history] {
        let history = TaskHistory(of: task, try await store.history(of: task.spec.id))
        if context.wantsJSON {
          context.output.document { history.write(to: &$0) }
        } else {
          context.print(.history(history))
        }
        return .done
      }
      let report = try await TaskReport.of(task, in: store)
      if context.wantsJSON {
        context.output.document { report.write(to: &$0) }
      } else {
        for line in TaskDetails.lines(report) { context.output.line(line) }
      }
      return .done
    }
  }
}

extension OptionSpec {
  fileprivate static let history = OptionSpec("history", .flag, help: "Show the events of its life instead")
}
