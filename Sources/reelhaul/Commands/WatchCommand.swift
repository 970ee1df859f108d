import CommandLineKit
import TaskAdvice
import TaskCore
import WorkerOptions

extension Subcommand {
  static let watch = Subcommand(
    CommandSpec(
      name: "watch", summary: "Follow tasks while they run",
      discussion: """
        On a terminal, shows live bars with rate and time left. On a pipe, prints a line for each change; with --json a task document \
        for each change. Ends when the named tasks have ended. Without names it follows all running tasks until it is interrupted.
        """,
      options: [.json] + OptionSpec.reading,
      positionals: [
        PositionalSpec("TASK", .many(atLeast: 0), help: "the tasks' ids, or their ends; all unfinished ones by default")
      ],
      examples: [
        Example("reelhaul watch", "All running tasks"),
        Example("reelhaul watch $(reelhaul download https://example.com/film.mp4)", "One task until its end"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound))
  ) { context in
    let names = try TaskID.parse(context.arguments.positionals)
    return try await Fleet.withStore(context) { store in
      let watch = TaskWatch(store, context)
      let lookup = TaskLookup(store)
      let ids = try await lookup.ids(names)
      guard !ids.isEmpty else { return try await watch.runForever() }
      var known: [TaskDocument] = []
      for id in ids { known.append(try await lookup.get(id)) }
      let documents = try await watch.run(ids, known: known, until: \.state.isFinal)
      guard let sentence = FailureAdvice.sentence(documents.filter { $0.state != .succeeded }) else { return .done }
      context.note(sentence)
      return .failed
    }
  }
}
