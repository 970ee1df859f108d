import CommandLineKit
import ReelhaulTelemetry
import WorkerCore
import WorkerOptions

extension Subcommand {
  static let worker = Subcommand(
    CommandSpec(
      name: "worker", summary: "Run one worker until it is stopped",
      discussion: """
        Takes commands from Kafka, claims tasks from PostgreSQL and runs them. SIGTERM and SIGINT drain it: it \
        takes no new tasks, records its progress, hands its tasks back and ends with 0. You may also kill it: another \
        worker continues its tasks after its lease has ended.
        """,
      options: OptionSpec.working + OptionSpec.producing,
      examples: [
        Example("reelhaul worker --storage default=/srv/videos", "With Kafka and PostgreSQL from the environment")
      ],
      exits: ExitCode.meanings(.done, .failed, .usage))
  ) { context in
    let configuration = try WorkerConfiguration(
      context.arguments, hints: UnknownSettings.sentences(context.arguments.settings))
    let log = Logger(level: context.arguments[.logLevel].flatMap { LogLevel(name: $0) } ?? .info)
    for sentence in UnknownSettings.sentences(context.arguments.settings) { log.warning(sentence) }
    if configuration.storage.isEmpty {
      log.warning("this worker has no storage and cannot run downloads: set \(OptionSpec.storage.setting)")
    }
    let code = try await WorkerProcess.run(configuration, log: log)
    log.close()
    return ExitCode(rawValue: code) ?? .failed
  }
}
