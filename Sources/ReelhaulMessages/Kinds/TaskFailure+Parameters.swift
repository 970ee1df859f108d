import ReelhaulCodec
import TaskCore

extension TaskFailure {
  /// Why a run cannot begin with the parameters of its task.
  package init(_ error: InvalidTask) {
    self.init(code: .parametersInvalid, message: "\(error)", class: .fail)
  }

  /// The same, where they cannot be read. A name that this version does not know is one of a newer program, whose workers
  /// can run the task: it was checked as it was submitted.
  init(_ failure: DecodingFailure) {
    guard case .unknownName = failure.problem else {
      self.init(InvalidTask(failure))
      return
    }
    self.init(
      code: .specUnreadable, message: "this worker's version cannot read the task: \(InvalidTask(failure))",
      class: .wait)
  }
}
