import CommandLineKit
import ReelhaulMessages
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let download = Subcommand(
    CommandSpec(
      name: "download", synonyms: ["get", "fetch", "submit"], summary: "Fetch a file over HTTP or HTTPS into storage",
      discussion: """
        Submits a task and prints its id once Kafka has it. The workers fetch the file in parallel ranges, \
        continue after any interruption from the bytes on disk, verify the file and then move it to its destination. \
        Interrupting --wait ends the wait, not the task.

        With --json and without --wait, it prints the task once a worker has stored it. If PostgreSQL is not configured \
        or cannot be reached, it prints the task as it was sent, and says so. Only --wait needs PostgreSQL.
        """,
      options: OptionSpec.submitting + [.wait, .json] + OptionSpec.producing,
      positionals: [PositionalSpec("URL", help: "the file to fetch: http:// or https://")],
      examples: [
        Example("reelhaul download https://example.com/film.mp4 --label title='A film' --wait", "Fetch it and watch"),
        Example(
          "reelhaul download https://example.com/film.mp4 --to storage://default/films/a.mp4 --if-exists skip",
          "Choose the destination; do nothing if the file exists"),
        Example(
          """
          reelhaul download https://example.com/film.mp4 --rate 5MiB --not-before +2h --sha256 \
          9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
          """, "Verify the file; start later and limit the rate"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let spec = try TaskSpec(downloadOf: context.arguments.positionals[0], context.arguments).checked()
    guard context.arguments[flag: .wait] else { return try await send(spec, context) }
    return try await Fleet.withStore(context) { store in
      try await Fleet.send([.submit(spec)], context)
      if !context.wantsJSON { context.output.line("\(spec.id)") }
      do {
        return try await follow(spec, in: store, context, toItsEnd: true)
      } catch {
        if context.wantsJSON { context.note("Task \(spec.id) was sent.") }
        throw error
      }
    }
  }

  private static func send(_ spec: TaskSpec, _ context: Context) async throws -> ExitCode {
    try await Fleet.send([.submit(spec)], context)
    guard context.wantsJSON else {
      context.output.line("\(spec.id)")
      return .done
    }
    do {
      return try await Fleet.withStore(context) { store in
        try await follow(spec, in: store, context, toItsEnd: false)
      }
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      // The task was sent. Only its result is unknown.
      context.note("The task was sent, and is printed as it was sent, because \(CommandFailure(error).message).")
      context.output.document { TaskSpecJSON.write(spec, to: &$0) }
      return .done
    }
  }

  /// Follows the task until it is stored or has ended, and prints its document if asked to.
  private static func follow(
    _ spec: TaskSpec, in store: any TaskReader & FleetReader, _ context: Context, toItsEnd: Bool
  ) async throws -> ExitCode {
    let documents = try await TaskWatch(store, context, isQuiet: context.wantsJSON)
      .run([spec.id], until: { !toItsEnd || $0.state.isFinal || !$0.spec.differences(from: spec).isEmpty })
    if let other = documents.first?.spec.differences(from: spec), !other.isEmpty {
      throw CommandFailure(
        .failed, "task \(spec.id) already exists and is different: \(other.joined(separator: ", "))",
        hint: "It is not changed: 'reelhaul show \(spec.id)'. Without --id a new task gets its own id.")
    }
    if context.wantsJSON { try await TaskReport.of(documents, in: store).forEach(context.output.json) }
    let undone = documents.filter { $0.state != .succeeded && (toItsEnd || $0.state.isFinal) }
    guard let sentence = FailureAdvice.sentence(undone) else { return .done }
    context.note(sentence)
    return .failed
  }
}
