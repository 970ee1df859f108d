import CommandLineKit
import TaskCore

extension TaskSpec {
  /// The task with its destination filled in, if everything about it is right that can be known before it runs.
  func checked() throws(UsageError) -> TaskSpec {
    var spec = self
    spec.fillInDestination()
    do {
      try spec.validate()
    } catch {
      throw UsageError("\(error)")
    }
    return spec
  }
}
