import CommandLineKit
import Glibc
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskStore
import TransferEngine
import WorkerOptions

extension Subcommand {
  static let migrate = Subcommand(
    CommandSpec(
      name: "migrate", summary: "Prepare the database's schema, Kafka's topics and storage roots",
      discussion: """
        Makes the changes and reports them; with --plan it only reports them. Safe to repeat, and to run from several places at once. \
        If Kafka is configured, missing topics are created. Existing topics are not changed; differences are reported. \
        Given storage roots are marked as volumes if they have no mark yet. Workers use only marked roots, so a missing \
        mount is never taken for an empty disk. If the directory of a root is missing, no root is marked and no topic \
        is created.
        """,
      options: [.planOnly, .downgrade, .json, .storage] + OptionSpec.producing,
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
    let roots = try context.arguments.storageRoots()
    let say: ([String]) -> Void = { lines in
      guard !context.wantsJSON else { return }
      for line in lines { context.output.line(line) }
    }
    let schema = try await Fleet.withPool(context.arguments) { pool in
      try await SchemaMigration(pool, downgrades: context.arguments[flag: .downgrade])
        .run(topicPrefix: kafka == nil ? nil : topics.prefix, isDry: isDry)
    }
    say(schema.lines)
    let storages = try prepare(Storage(roots: roots), isDry: isDry)
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

extension Subcommand {
  private static func prepare(_ storage: Storage, isDry: Bool) throws -> [StorageReport] {
    let before = storage.volumes
    for (name, path) in storage.roots.sorted(by: { $0.key < $1.key }) where before[name] == nil {
      guard (try? FileDescriptor.open(path, O_RDONLY | O_DIRECTORY)) != nil else {
        throw CommandFailure(.failed, "storage \(name): there is no directory \(path): mount it or create it first")
      }
    }
    // Another process may have marked a root meanwhile.
    let marked = try isDry ? [] : storage.initialise()
    let after = storage.volumes
    return storage.roots.sorted { $0.key < $1.key }.map { name, path in
      StorageReport(
        name: name, path: path, volume: after[name].map { "\($0)" },
        status: marked.contains(name) ? .marked : isDry && before[name] == nil ? .pending : .unchanged)
    }
  }
}

extension OptionSpec {
  fileprivate static let planOnly = OptionSpec("plan", .flag, help: "Show what would be done, and change nothing")
  fileprivate static let downgrade = OptionSpec(
    "downgrade", .flag, help: "Replace the database's functions even if a newer program has made them")
}
