import CommandLineKit
import ReelhaulMessages
import TaskCore
import WorkerOptions

extension TaskSpec {
  /// The task with its destination filled in. Throws for every mistake that can be found before the task runs.
  func checked() throws(UsageError) -> TaskSpec {
    var spec = self
    spec.fillInDestination()
    do {
      try spec.validateWithParameters()
    } catch {
      throw UsageError("\(Self.spelling(of: error.field)): \(error.message)")
    }
    return spec
  }

  /// The word of the command line that gives the field: its option, or the URL, which is the source.
  private static func spelling(of path: String) -> String {
    path == "source" ? "URL" : TaskField.named(path).flatMap(OptionSpec.init)?.spelling ?? path
  }
}
