import CommandLineKit
import Kafka
import Postgres
import ReelhaulClient
import System
import TaskStore

/// Why a command ends without success: its exit code, what happened, what to do next.
struct CommandFailure: Error {
  var code: ExitCode
  var message: String
  var hint: String?

  init(_ code: ExitCode, _ message: String, hint: String? = nil) {
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// What any error of the modules below means to whoever typed the command.
  init(_ error: any Error) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as UsageError: self.init(.usage, error.message, hint: error.hint)
    case let error as StoreError: self.init(error)
    case let error as KafkaError: self.init(error)
    case let error as PostgresError: self.init(error)
    case let error as MigrationError:
      self.init(
        .failed, "\(error)", hint: "Use the program that made the schema, or another database (of 'up': --data-dir).")
    case let error as ReelhaulClientError:
      self.init(
        error.isRetryable ? .unreachable : .failed,
        error.isRetryable ? "Kafka cannot be reached: \(error)" : "Kafka: \(error)", hint: Self.doctor)
    default: self.init(.failed, "\(error)")
    }
  }

  private init(_ error: StoreError) {
    switch error {
    case .unavailable(let message):
      self.init(.unreachable, "PostgreSQL cannot be reached: \(message)", hint: Self.doctor)
    case .schema(let message):
      self.init(.unreachable, message, hint: "Bring the schema up to date with 'reelhaul migrate'.")
    case .failed(let state, let message):
      self.init(.failed, "PostgreSQL refused a statement: \(message) (SQLSTATE \(state))", hint: Self.doctor)
    }
  }

  private init(_ error: KafkaError) {
    if error.code == .invalidArgument {
      self.init(.usage, error.message)
    } else if error.isRetriable {
      self.init(.unreachable, "Kafka cannot be reached: \(error)", hint: Self.doctor)
    } else {
      self.init(.failed, "Kafka: \(error)", hint: Self.doctor)
    }
  }

  private init(_ error: PostgresError) {
    if error.code == .configuration {
      self.init(.usage, error.message)
    } else if error.code == .server, !error.endsSession {
      self.init(.failed, "PostgreSQL: \(error)", hint: Self.doctor)
    } else {
      self.init(.unreachable, "PostgreSQL cannot be reached: \(error)", hint: Self.doctor)
    }
  }

  private static let doctor = "See what is wrong with 'reelhaul doctor'."
}
