import CommandLineKit
import ReelhaulTelemetry
import WorkerOptions

/// All commands of the program, in the order of help.
enum Program {
  static let version = Build.version

  static let commands: [Subcommand] = [
    .up, .migrate, .worker, .doctor,
    .download, .upload, .copy, .delete, .submit, .batch,
    .pause, .resume, .cancel, .retry, .remove, .prioritize,
    .list, .show, .watch, .serve, .workers,
    .operations, .limits, .limit, .weight, .deadLetters, .token,
    .bench, .completions,
  ]

  static let spec = CommandSpec(
    name: "reelhaul", summary: "Moves videos with a fleet of workers: commands over Kafka, truth in PostgreSQL",
    discussion: """
      Start a whole fleet on this machine with 'reelhaul up', source the reelhaul.env that it writes, then submit work with \
      'reelhaul download URL' and follow it with 'reelhaul watch'.

      Every setting is a flag, an environment variable or a line of a settings file. The first of these is used.

      With --json a command prints one JSON document (watch without --once, and bench, one per line), or nothing if it \
      could not do its work: the reason is always text on standard error. --wait also prints a task that failed, \
      --all an operation that failed or was canceled, and doctor what it found; their exit code tells.
      """,
    options: [.config],
    examples: [
      Example("reelhaul up --demo", "See a fleet at work"),
      Example("reelhaul download https://example.com/film.mp4 --wait", "Fetch a file and wait for it"),
      Example("source <(reelhaul completions bash)", "Complete commands and options in bash"),
    ],
    exits: ExitCode.allCases.map { ExitMeaning($0.rawValue, $0.meaning) } + [
      ExitMeaning(130, "Ctrl-C interrupted the command"), ExitMeaning(143, "SIGTERM interrupted the command"),
    ],
    subcommands: commands.map(\.spec))

  static func run(_ context: Context) async throws -> ExitCode {
    guard let name = context.arguments.path.first, let command = commands.first(where: { $0.spec.name == name }) else {
      throw UsageError("there is no such command")
    }
    do {
      return try await command.run(context)
    } catch {
      throw CommandFailure(error).explained(by: context.arguments)
    }
  }
}
