import CommandLineKit
import ReelhaulSystem
import TaskCore
import TaskStore
import WorkerOptions

/// Options that select tasks by what they are, for lists and for commands to many tasks.
extension OptionSpec {
  static let withState = OptionSpec(
    "state", short: "s", .choice(TaskStatus.allCases.map(\.rawValue)), valueName: "STATE", repeatable: true,
    help: "Only tasks in this state: \(TaskStatus.allCases.map(\.rawValue).joined(separator: ", "))")
  static let inQueue = OptionSpec(
    "queue", short: "q", .text, valueName: "NAME", repeatable: true, help: "Only tasks of this queue")
  static let ofKind = OptionSpec("kind", .text, valueName: "KIND", repeatable: true, help: "Only tasks of this kind")
  static let atHost = OptionSpec(
    "host", .text, valueName: "HOST", repeatable: true,
    help: "Only tasks with this remote host; BUCKET.s3 for s3:// URLs")
  static let withCode = OptionSpec(
    "code", .text, valueName: "CODE", repeatable: true, help: "Only tasks whose last error has this code")
  static let withLabel = OptionSpec(
    "label", .text, valueName: "K[=V]", repeatable: true, help: "Only tasks with this label, and with all of them")
  static let withText = OptionSpec(
    "text", .text, help: "Only tasks with this in their id, source or destination, in any case")
  static let since = OptionSpec(
    "since", .text, valueName: "TIME",
    help: "Only tasks that were created then or later: 2026-01-31T20:00:00Z, or how long ago: 2h, 1d12h")
  static let before = OptionSpec(
    "before", .text, valueName: "TIME", help: "Only tasks that were created before that time")

  static let selection: [OptionSpec] = [
    .withState, .inQueue, .ofKind, .atHost, .withCode, .withLabel, .withText, .since, .before,
  ]
}

extension TaskFilter {
  /// What the options select. Throws ``UsageError``.
  init(selection arguments: Arguments) throws(UsageError) {
    self.init(
      states: Set(arguments.all(.withState).compactMap(TaskStatus.init(rawValue:))),
      queues: Set(arguments.all(.inQueue)), kinds: Set(arguments.all(.ofKind).map(TaskKind.init(rawValue:))),
      hosts: Set(arguments.all(.atHost).map { $0.lowercased() }), codes: Set(arguments.all(.withCode)),
      text: arguments[.withText], createdAfter: try Self.time(arguments, .since),
      createdBefore: try Self.time(arguments, .before))
    do throws(LabelProblem) {
      labels = try Self.labels(arguments.all(.withLabel))
    } catch {
      throw UsageError("\(OptionSpec.withLabel.spelling): \(error)")
    }
  }

  /// A time, or how long ago it was.
  private static func time(_ arguments: Arguments, _ option: OptionSpec) throws(UsageError) -> Timestamp? {
    guard let text = arguments[option] else { return nil }
    if let time = Timestamp(text) { return time }
    guard let age = DurationText.parse(text) else {
      throw UsageError(
        "\(option.spelling) must be a time such as 2026-01-31T20:00:00Z, or how long ago: 2h30m or 1d, not \"\(text)\"")
    }
    return Timestamp(microseconds: Clocks.realtimeMicroseconds() - age.microseconds)
  }
}
