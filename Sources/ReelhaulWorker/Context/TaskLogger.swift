import ReelhaulTasks
import ReelhaulTelemetry
import TaskCore
import TaskStore
import WorkerCore

/// Writes lines to the worker's log; each names the task, its attempt, and its span if it is traced. A field whose name a
/// line already has gets an underscore behind it.
public struct TaskLogger: Sendable {
  private let write: @Sendable (LogLevel, String, [(String, String)]) -> Void

  package init(_ logger: Logger, of run: RunLedger) {
    let common: [(String, LogValue)] =
      [("task", .of(run.claim.spec.id)), ("attempt", .integer(run.claim.attempt))] + (run.trace?.logFields ?? [])
    write = { level, message, fields in
      logger.log(level, message, fields: common + Self.renamed(fields).map { ($0.0, .text($0.1)) })
    }
  }

  /// What every line has, whether the task is traced or not.
  private static let reserved: Set<String> = ["ts", "level", "msg", "task", "attempt", "trace_id", "span_id"]

  /// The fields with names that are not reserved, each once: readers of JSON take only one of two.
  static func renamed(_ fields: [(String, String)]) -> [(String, String)] {
    var names = reserved
    return fields.map { field in
      var name = field.0
      while !names.insert(name).inserted { name += "_" }
      return (name, field.1)
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
