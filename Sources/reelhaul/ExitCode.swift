import CommandLineKit
import WorkerOptions

/// The program's exit codes, for scripts.
enum ExitCode: Int32, CaseIterable, Sendable {
  case done = 0
  case failed = 1
  case usage = 2
  case unreachable = 3
  case notFound = 4
  case refused = 5

  var meaning: String {
    switch self {
    case .done: "done"
    case .failed: "a task failed or was canceled, or the work could not be done"
    case .usage: "the command line, a setting or an input line is wrong, or a setting is missing"
    case .unreachable: "Kafka or PostgreSQL cannot be reached, or lacks its topics or schema"
    case .notFound: "there is no such task, worker, operation, token or dead letter"
    case .refused: "the task's state does not allow it, or its id is that of a removed task"
    }
  }
}

extension ExitCode {
  /// The meanings of these codes, for the help of a command.
  static func meanings(_ codes: ExitCode...) -> [ExitMeaning] {
    codes.map { ExitMeaning($0.rawValue, $0.meaning) }
  }
}
