import CommandLineKit
import TaskCore

extension Subcommand {
  static let download = Subcommand(
    CommandSpec(
      name: "download", summary: "Fetch a file over HTTP or HTTPS into storage",
      discussion: """
        Hands a task to the fleet and prints its id once Kafka has it. The workers fetch the file in parallel ranges, \
        go on after any interruption from what is safely on disk, verify it and put it in its place at once. \
        Interrupting --wait ends the waiting, not the task.
        """,
      options: OptionSpec.submitting + [.wait, .json] + OptionSpec.producing,
      positionals: [PositionalSpec("URL", help: "what to fetch: http:// or https://")],
      examples: [
        Example("reelhaul download https://example.com/film.mp4 --label title='A film' --wait", "Fetch it and watch"),
        Example(
          "reelhaul download https://example.com/film.mp4 --to storage://default/films/a.mp4 --if-exists skip",
          "Choose the place; do nothing where it is there already"),
        Example("reelhaul download URL --sha256 9f86d0… --rate 5MiB --not-before +2h", "Verify, gently, later"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let spec = try TaskSpec(downloadOf: context.arguments.positionals[0], context.arguments).checked()
    guard context.arguments[flag: .wait] || context.wantsJSON else {
      try await Fleet.send([.submit(spec)], context)
      context.output.line("\(spec.id)")
      return .done
    }
    return try await Fleet.withStore(context) { store in
      try await Fleet.send([.submit(spec)], context)
      if !context.wantsJSON { context.output.line("\(spec.id)") }
      let isAwaited = context.arguments[flag: .wait]
      let documents = try await TaskWatch(store, context, isQuiet: context.wantsJSON)
        .run([spec.id], until: { !isAwaited || $0.state.isFinal })
      if context.wantsJSON { documents.forEach(context.output.json) }
      let isUndone = documents.contains { $0.state != .succeeded && (isAwaited || $0.state.isFinal) }
      guard isUndone else { return .done }
      context.note("'reelhaul show \(spec.id)' says more; 'reelhaul retry \(spec.id)' tries again.")
      return .failed
    }
  }
}

extension ExitCode {
  static func meanings(_ codes: ExitCode...) -> [ExitMeaning] {
    codes.map { ExitMeaning($0.rawValue, $0.meaning) }
  }
}
