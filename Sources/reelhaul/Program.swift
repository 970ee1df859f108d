import CommandLineKit
import WorkerOptions

/// All commands of the program, in the order help lists them.
enum Program {
  static let version = "0.1.0"

  static let commands: [Subcommand] = [
    .up, .migrate, .worker, .doctor,
    .download, .batch,
    .pause, .resume, .cancel, .retry, .remove, .prioritize,
    .list, .show, .watch, .workers,
    .limits, .limit, .weight,
    .bench, .completions,
  ]

  static let spec = CommandSpec(
    name: "reelhaul", summary: "Moves videos with a fleet of workers: commands over Kafka, truth in PostgreSQL",
    discussion: """
      Start a whole fleet on this machine with 'reelhaul up', source the reelhaul.env it writes, then hand in work with \
      'reelhaul download URL' and look on with 'reelhaul watch'.

      Every setting is a flag, an environment variable or a line of a settings file, and the first of these wins.

      With --json a command prints one JSON document (watch and bench one a line), or nothing where it could not do its \
      work: the reason is text on standard error, always.
      """,
    options: [.config],
    examples: [
      Example("reelhaul up --demo", "See the whole thing work"),
      Example("reelhaul download https://example.com/film.mp4 --wait", "Fetch a file and wait for it"),
      Example("source <(reelhaul completions bash)", "Complete commands and options in bash"),
    ],
    exits: ExitCode.allCases.map { ExitMeaning($0.rawValue, $0.meaning) } + [
      ExitMeaning(130, "watch or --wait was ended by Ctrl-C"), ExitMeaning(143, "watch or --wait was ended by SIGTERM"),
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
