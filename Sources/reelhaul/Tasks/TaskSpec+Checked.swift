import CommandLineKit
import TaskCore
import WorkerOptions

extension TaskSpec {
  /// The task with its destination filled in, if everything about it is right that can be known before it runs.
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

  /// What gives a field on the command line, beside the URL.
  private static let options: [String: OptionSpec] = [
    "destination": .destination, "priority": .priority, "queue": .queue, "after": .after, "expect.sha256": .sha256,
    "expect.md5": .md5, "expect.bytes": .bytes, "headers": .header, "maxAttempts": .maxAttempts,
    "retryAfter": .retryAfter, "rate": .rate, "credential": .credential, "labels": .label,
  ]
}
