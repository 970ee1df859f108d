import CommandLineKit
import TaskCore

extension TaskSpec {
  /// The task with its destination filled in. Throws for every mistake that can be found before the task runs.
  func checked() throws(UsageError) -> TaskSpec {
    var spec = self
    spec.fillInDestination()
    do {
      try spec.validate()
    } catch {
      throw UsageError("\(Self.options[error.field]?.spelling ?? "URL"): \(error.message)")
    }
    return spec
  }

  /// The options that set the fields of a task; the URL sets the source.
  private static let options: [String: OptionSpec] = [
    "destination": .destination, "priority": .priority, "queue": .queue, "after": .after, "expect.sha256": .sha256,
    "expect.md5": .md5, "expect.bytes": .bytes, "headers": .header, "maxAttempts": .maxAttempts,
    "retryAfter": .retryAfter, "rate": .rate, "credential": .credential, "labels": .label,
  ]
}
