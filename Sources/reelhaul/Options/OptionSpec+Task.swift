import CommandLineKit
import TaskCore

/// Options of a task.
extension OptionSpec {
  private static let task = "Task"
  /// A task with only a source: its values are the defaults in help.
  private static let standard = TaskSpec(id: UniqueID(high: 0, low: 0), kind: .download, source: "")

  static let destination = OptionSpec(
    "to", .text, valueName: "URL", group: task,
    help:
      "The destination: storage://NAME/PATH; by default storage://default/ and the source's file name, or the task's id"
  )
  static let id = OptionSpec(
    "id", .text, valueName: "UUID", group: task, help: "The task's id; a second submit of an id changes nothing")
  static let priority = OptionSpec(
    "priority", short: "p", .priority, default: "\(standard.priority)", group: task, help: "Higher runs first")
  static let queue = OptionSpec(
    "queue", short: "q", .text, valueName: "NAME", default: standard.queue, group: task, help: "The task's queue")
  static let after = OptionSpec(
    "after", .text, valueName: "TASK", repeatable: true, group: task, help: "Run once that task has succeeded")
  static let notBefore = OptionSpec(
    "not-before", .text, valueName: "TIME", group: task,
    help: "The earliest start: 2026-01-31T20:00:00Z, or from now: +1d, +2h30m")
  static let ifExists = OptionSpec(
    "if-exists", .choice(IfExists.allCases.map(\.rawValue)), default: standard.ifExists.rawValue, group: task,
    help: "What to do if the destination exists; skip fails if the file is not the expected one")
  static let label = OptionSpec(
    "label", short: "l", .text, valueName: "K=V", repeatable: true, group: task,
    help: "A label; 'title' is the task's name for people")
  static let paused = OptionSpec("paused", .flag, group: task, help: "Submit the task paused")

  private static let check = "Checks"
  static let sha256 = OptionSpec(
    "sha256", .text, valueName: "HEX", group: check, help: "The SHA-256 that the file must have")
  static let md5 = OptionSpec("md5", .text, valueName: "HEX", group: check, help: "The MD5 that the file must have")
  static let bytes = OptionSpec("bytes", .bytes, group: check, help: "The length that the file must have")

  private static let transfer = "Transfer"
  static let header = OptionSpec(
    "header", short: "H", .text, valueName: "'K: V'", repeatable: true, group: transfer,
    help: "A request header; secrets belong in a credential")
  static let credential = OptionSpec(
    "credential", .text, valueName: "NAME", group: transfer, help: "The name of a credential that the workers have")
  static let rate = OptionSpec(
    "rate", .bytes, group: transfer, help: "The limit in bytes a second")
  static let maxAttempts = OptionSpec(
    "max-attempts", .number(in: RetryPolicy.attempts), default: "\(standard.retry.maxAttempts)", group: transfer,
    help: "How often the task may fail in a row without progress")
  static let retryAfter = OptionSpec(
    "retry-after", .text, valueName: "SECONDS,…", group: transfer,
    help: "The waits before further attempts; the last one repeats; by default they grow and are random")

  static let submitting: [OptionSpec] = [
    .destination, .id, .priority, .queue, .after, .notBefore, .ifExists, .label, .paused,
    .sha256, .md5, .bytes,
    .header, .credential, .rate, .maxAttempts, .retryAfter,
  ]
}

extension ValueKind {
  /// The priority of a task.
  static let priority = number(in: TaskSpec.priorities)

  fileprivate static func number(in range: ClosedRange<Int>) -> ValueKind {
    .integer(Int64(range.lowerBound)...Int64(range.upperBound))
  }
}
