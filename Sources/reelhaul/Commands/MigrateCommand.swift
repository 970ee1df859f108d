import CommandLineKit
import ReelhaulKafka
import WorkerOptions

extension Subcommand {
  static let migrate = Subcommand(
    CommandSpec(
      name: "migrate", summary: "Prepare the database's schema, Kafka's topics and storage roots",
      discussion: """
        Makes the changes and reports them; with --plan it only reports them. Safe to repeat, and to run from several places at once. \
        If Kafka is configured, missing topics are created. Existing topics are not changed; differences are reported. \
        Given storage roots are marked as volumes if they have no mark yet. Workers use only marked roots, so a missing \
        mount is never taken for an empty disk. For the same reason a root of a storage that workers or tasks have used \
        is not marked anew, except with --new-volume. If that is so, or if the directory of a root is missing, no root \
        is marked and no topic is created.
        """,
      options: [.planOnly, .downgrade, .json, .storage, .newVolume] + OptionSpec.producing,
      examples: [
        Example("reelhaul migrate --plan", "Show the plan, and change nothing"),
        Example("reelhaul migrate --plan --json | jq .schema", "The schema's version now and afterwards"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let isDry = context.arguments[flag: .planOnly]
    let topics = try FleetSettings.topics(context.arguments)
    // All that is given is read before anything is written.
    let kafka = try context.arguments[.kafka].map { _ in try Fleet.kafka(context.arguments) }
    let migration = try StorageMigration(
      try context.arguments.storageRoots(), new: context.arguments.all(.newVolume))
    let say: ([String]) -> Void = { lines in
      guard !context.wantsJSON else { return }
      for line in lines { context.output.line(line) }
    }
    let (schema, former) = try await Fleet.withPool(context.arguments) { pool in
      let schema = try await SchemaMigration(pool, downgrades: context.arguments[flag: .downgrade])
        .run(topicPrefix: kafka == nil ? nil : topics.prefix, isDry: isDry)
      // A plan does not read tables of an earlier version, or none.
      let isReadable = !isDry || schema.before == schema.after
      return (schema, try await isReadable ? migration.former(in: pool) : [])
    }
    say(schema.lines)
    let storages = try migration.run(former: former, isDry: isDry)
    say(storages.map(\.line))
    var made: TopicsReport?
    if let kafka {
      let patience = Task {
        try await Task.sleep(for: .seconds(5))
        context.note("Kafka is slow. Once it has answered, migrate tries for up to a minute.")
      }
      defer { patience.cancel() }
      let report = try await TopicMigration(kafka, topics).run(isDry: isDry)
      say(report.lines)
      made = report
    } else {
      context.note("No Kafka is configured, so topics were not checked.")
    }
    if context.wantsJSON { context.output.json(isDry: isDry, schema, storages, made) }
    return .done
  }
}

extension OptionSpec {
  static let newVolume = OptionSpec(
    "new-volume", .text, valueName: "NAME", repeatable: true,
    help: "Mark this storage's root as a new volume although the storage was used before; repeatable")
  fileprivate static let planOnly = OptionSpec("plan", .flag, help: "Show what would be done, and change nothing")
  fileprivate static let downgrade = OptionSpec(
    "downgrade", .flag, help: "Replace the database's functions even if a newer program has made them")
}
