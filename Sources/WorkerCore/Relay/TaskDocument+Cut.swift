import ReelhaulCodec
import TaskCore

extension TaskDocument {
  /// The document without its long fields, for a reader that takes no more. All other fields are bounded.
  var cut: TaskDocument {
    var task = self
    task.output = nil
    task.spec.parameters = nil
    task.spec.labels = [:]
    task.spec.after = []
    // Whoever makes errors bounds their texts. One that did not must not hold up the events of all tasks.
    if let message = error?.message { task.error?.message = message.prefix(bytes: Self.messageLimit) }
    return task
  }

  private static let messageLimit = 1000
}
