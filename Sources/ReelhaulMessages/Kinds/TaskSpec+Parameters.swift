import TaskCore

extension TaskSpec {
  /// Checks everything that can be known before the task runs: its fields, and the parameters of built-in kinds.
  package func validateWithParameters() throws(InvalidTask) {
    try validate()
    switch kind {
    case .upload, .copy: _ = try UploadParameters(self)
    case .delete: _ = try DeleteParameters(self)
    default: break
    }
  }
}
