import ReelhaulTasks
import ReelhaulTelemetry
import TaskCore

/// Writes lines to the worker's log; each names the task and its attempt.
public struct TaskLogger: Sendable {
  private let write: @Sendable (LogLevel, String, [(String, String)]) -> Void

  package init(_ logger: Logger, task: UniqueID, attempt: Int) {
    write = { level, message, fields in
      var values: [(String, LogValue)] = [("task", .of(task)), ("attempt", .integer(attempt))]
      values += fields.map { ($0.0, .text($0.1)) }
      logger.log(level, message, values)
    }
  }

  package init(_ write: @escaping @Sendable (LogLevel, String, [(String, String)]) -> Void) {
    self.write = write
  }

  public func debug(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { log(.debug, message, fields) }
  public func info(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { log(.info, message, fields) }
  public func notice(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { log(.notice, message, fields) }
  public func warning(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) {
    log(.warning, message, fields)
  }
  public func error(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { log(.error, message, fields) }

  private func log(_ level: LogLevel, _ message: String, _ fields: KeyValuePairs<String, String>) {
    write(level, message, fields.map { ($0.key, $0.value) })
  }
}
