import CommandLineKit
import ReelhaulKafka
import ReelhaulTelemetry
import TaskCore
import TransferEngine
import WorkerCore

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
    let configuration = try WorkerConfiguration(context.arguments)
    let log = Logger(level: context.arguments[.logLevel].flatMap { LogLevel(name: $0) } ?? .info)
    for sentence in UnknownSettings.sentences(context.arguments.settings) { log.warning(sentence) }
    if configuration.storage.isEmpty {
      log.warning("this worker has no storage and cannot run downloads: set \(OptionSpec.storage.setting)")
    }
    let code = await WorkerProcess.run(configuration, log: log)
    log.close()
    return ExitCode(rawValue: code) ?? .failed
  }
}

extension WorkerConfiguration {
  init(_ arguments: Arguments) throws {
    // The URL is parsed here only to find mistakes, because a worker keeps trying to connect.
    _ = try Fleet.postgres(arguments)
    var settings = WorkerSettings()
    settings.topics = try Fleet.topics(arguments)
    settings.concurrency = arguments.integer(.concurrency).map { Int($0) } ?? settings.concurrency
    settings.leaseSeconds = arguments.integer(.lease).map { Int($0) } ?? settings.leaseSeconds
    settings.drainLimit = arguments.integer(.drain).map { .seconds($0) } ?? settings.drainLimit
    settings.labels = try KeyValueList.parse(arguments[.labels] ?? "", of: .labels)
    try self.init(
      kafka: Fleet.kafka(arguments), postgres: arguments[.postgres] ?? "",
      storage: arguments.storageRoots(),
      allowedNetworks: Self.networks(arguments[.allowNetworks] ?? ""), settings: settings)
    rate = arguments.bytes(.workerRate).flatMap { $0 > 0 ? $0 : nil }
    caFile = arguments[.caFile]
    credentials = arguments[.credentials]
    try Self.check(.caFile, caFile) { try CertificateFile.check($0) }
    try Self.check(.credentials, credentials) { _ = try CredentialFile(path: $0).credentials() }
    initialisesStorage = arguments[flag: .initStorage]
  }

  /// All mistakes in a worker's settings, except the addresses of services and the files that it reads.
  static func mistakes(in settings: Settings) -> [UsageError] {
    OptionSpec.working.compactMap { option in
      do throws(UsageError) {
        let text = try settings.value(of: option) ?? ""
        switch option {
        case .allowNetworks: _ = try networks(text)
        case .labels: _ = try KeyValueList.parse(text, of: option)
        default: break
        }
        return nil
      } catch {
        return error
      }
    }
  }

  private static func networks(_ text: String) throws(UsageError) -> [CIDR] {
    guard !text.isEmpty else { return [] }
    let setting = OptionSpec.allowNetworks.setting
    guard let networks = CommaList.parse(text) else {
      throw UsageError("\(setting) must be \(OptionSpec.allowNetworks.valueName), not \"\(text)\"")
    }
    do throws(InvalidNetwork) {
      return try networks.map { text throws(InvalidNetwork) in try CIDR(text) }
    } catch {
      throw UsageError("\(setting): \(error)")
    }
  }

  /// The file is checked at the start, because a worker with a wrong file would fail task after task.
  private static func check(
    _ option: OptionSpec, _ path: String?, _ body: (String) throws -> Void
  ) throws(UsageError) {
    guard let path else { return }
    do {
      try body(path)
    } catch {
      throw UsageError("\(option.setting): \(error)", hint: "'reelhaul doctor' checks it too.")
    }
  }
}
