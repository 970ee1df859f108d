import CommandLineKit
import Kafka
import Postgres
import TaskStore

extension Subcommand {
  static let migrate = Subcommand(
    CommandSpec(
      name: "migrate", summary: "Bring the database's schema and Kafka's topics up to date",
      discussion: """
        Shows what is to be done and does it. Safe to repeat, and to run from many places at once. Topics are made where \
        Kafka is configured; those that are there already are left as they are, and differences are reported.
        """,
      options: [.planOnly] + OptionSpec.producing,
      examples: [Example("reelhaul migrate --plan", "Look, and change nothing")],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let isDry = context.arguments[flag: .planOnly]
    try await Fleet.withPool(context.arguments) { pool in
      try await SchemaMigration(pool).run(isDry: isDry) { context.output.line($0) }
    }
    guard context.arguments[.kafka] != nil else {
      context.note("No Kafka is configured: topics were not looked at.")
      return .done
    }
    try await TopicMigration(Fleet.kafka(context.arguments), Fleet.topics(context.arguments))
      .run(isDry: isDry) { context.output.line($0) }
    return .done
  }
}

extension OptionSpec {
  fileprivate static let planOnly = OptionSpec("plan", .flag, help: "Show what is to be done, and do nothing")
}
