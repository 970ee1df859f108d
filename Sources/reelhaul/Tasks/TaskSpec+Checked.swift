import CommandLineKit
import ReelhaulMessages
import TaskCore
import WorkerOptions

extension TaskSpec {
  /// The task with its destination filled in. Throws for every mistake that can be found before the task runs.
  ///
  /// Errors name the word of the command line that gives a field: its option, or what `words` has for it.
  func checked(_ words: [String: String] = ["source": "URL"]) throws(UsageError) -> TaskSpec {
    var spec = self
    spec.fillInDestination()
    do {
      try spec.validateWithParameters()
    } catch {
      let word = words[error.field] ?? TaskField.named(error.field).flatMap(OptionSpec.init)?.spelling ?? error.field
      throw UsageError("\(word): \(error.message)")
    }
    return spec
  }
}
