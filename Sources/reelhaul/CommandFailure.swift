import CommandLineKit
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskStore
import WorkerCore
import WorkerOptions

/// Why a command failed: its exit code, the cause, and what to do next.
struct CommandFailure: Error {
  var code: ExitCode
  var message: String
  var hint: String?
  /// The option with the address of the service that does not answer.
  private(set) var unanswered: OptionSpec?

  init(_ code: ExitCode, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// The failure with a hint that depends on the command's arguments.
  func explained(by arguments: Arguments) -> CommandFailure {
    guard let hint, let unanswered, let more = FormerFleet.hint(unanswered, arguments) else { return self }
    var failure = self
    failure.hint = "\(more)\n\(hint)"
    return failure
  }

  /// Describes any error of the other modules for the user of the command. `kafka`, `postgres` and `topicPrefix` are
  /// the options for the services and their topics.
  init(
    _ error: any Error, kafka: OptionSpec = .kafka, postgres: OptionSpec = .postgres,
    topicPrefix: OptionSpec = .topicPrefix
  ) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as UsageError: self.init(.usage, error.message, hint: error.hint)
    case let error as WorkError: self.init(.failed, error.message, hint: error.hint)
    case let error as StoreError: self.init(error, postgres, topicPrefix)
    case let error as KafkaError: self.init(error, kafka)
    case let error as PostgresError: self.init(error, postgres)
    case MigrationError.newerRoutines:
      self.init(
        .failed, "\(error)",
        hint: "Upgrade this program. To go back to it, stop newer workers, then use 'reelhaul migrate --downgrade'.")
    case MigrationError.newerSchema:
      self.init(
        .failed, "\(error)", hint: "Upgrade this program. 'reelhaul migrate --downgrade' cannot undo migrations.")
    case let error as MigrationError:
      self.init(.failed, "\(error)", hint: StoreError.otherSchema("\(error)").advice)
    case let error as ReelhaulClientError: self.init(error.description, isRetryable: error.isRetryable, kafka)
    default: self.init(.failed, "\(error)")
    }
  }

  private init(_ error: StoreError, _ postgres: OptionSpec, _ topicPrefix: OptionSpec) {
    switch error {
    case .unavailable(let message, _): self.init(message, error.lack, postgres)
    case .schema(let message):
      self.init(
        .unreachable, message,
        hint: "'reelhaul doctor' compares the versions; 'reelhaul migrate' upgrades an older schema.")
    case .otherSchema(let message): self.init(.failed, message, hint: error.advice)
    case .otherFleet(let fleets):
      self.init(
        .usage, "\(fleets)",
        hint: """
          Correct \(topicPrefix.setting), or give this fleet its own database or schema. \
          To change a fleet's prefix, see docs/operations.md.
          """)
    case .failed(let message, _, _):
      self.init(.failed, "PostgreSQL refused a statement: \(message)", hint: Self.doctor)
    }
  }

  private init(_ error: KafkaError, _ option: OptionSpec) {
    if error.code == .invalidArgument {
      self.init(.usage, error.message)
    } else {
      self.init("\(error)", isRetryable: error.isRetryable, option)
    }
  }

  private init(_ message: String, isRetryable: Bool, _ kafka: OptionSpec) {
    if isRetryable {
      self.init(
        .unreachable, "Kafka cannot be reached: \(message)",
        hint: Self.hint(kafka, " For TLS or SASL, set REELHAUL_KAFKA_SECURITY_PROTOCOL and the related properties."))
      unanswered = kafka
    } else {
      self.init(.failed, "Kafka: \(message)", hint: Self.doctor)
    }
  }

  private init(_ error: PostgresError, _ option: OptionSpec) {
    if error.code == .configuration {
      self.init(.usage, error.message, hint: "Correct \(option.setting).")
    } else if error.isPermanent {
      self.init(
        .unreachable, "PostgreSQL refuses this program: \(error)",
        hint: "Correct the user, password and database in \(option.setting), or grant the user what it lacks.")
    } else if error.code == .server, !error.endsSession, error.lack != .writes {
      self.init(.failed, "PostgreSQL: \(error)", hint: Self.doctor)
    } else {
      self.init("\(error)", error.lack, option)
    }
  }

  /// PostgreSQL does not answer, or says what it lacks.
  private init(_ message: String, _ lack: PostgresError.Lack?, _ postgres: OptionSpec) {
    switch lack {
    case nil:
      self.init(.unreachable, "PostgreSQL cannot be reached: \(message)", hint: Self.hint(postgres))
      unanswered = postgres
    case .writes:
      self.init(.unreachable, "PostgreSQL takes no writes: \(message)", hint: Self.nameThePrimary(postgres.setting))
    case .connections:
      self.init(
        .unreachable, "PostgreSQL has no free connection: \(message)", hint: "Raise max_connections, or use PgBouncer.")
    case .resources: self.init(.unreachable, "PostgreSQL cannot serve: \(message)", hint: "Its log says more.")
    }
  }

  /// What to do about a standby, or a read-only database. `setting` names the server.
  static func nameThePrimary(_ setting: String) -> String {
    "Name the primary server in \(setting), or set default_transaction_read_only = off."
  }

  private static let doctor = "'reelhaul doctor' checks everything."

  private static func hint(_ option: OptionSpec, _ more: String = "") -> String {
    "Start it, or correct \(option.setting).\(more) \(doctor)"
  }
}
