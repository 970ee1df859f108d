import TaskCore

/// What to do about what went wrong with a task: not everything is mended by another attempt.
enum FailureAdvice {
  /// Nil where nothing went wrong, or nothing is to be done.
  static func of(_ task: TaskDocument) -> String? {
    let retry = "'reelhaul retry \(task.spec.id)' tries again"
    switch task.state {
    case .failed: return task.error.flatMap { of($0.code, task.spec, retry) } ?? "\(retry)."
    case .canceled: return "\(retry)."
    case .queued, .paused: return task.error.flatMap { waiting($0.code) }
    case .blocked, .running, .publishing, .succeeded: return nil
    }
  }

  /// Where to read more about the first of these, which came to nothing, and what to do; nil of none.
  static func sentence(_ undone: [TaskDocument]) -> String? {
    undone.first.map { "'reelhaul show \($0.spec.id)' says more. \(of($0) ?? "")" }
  }

  /// For errors that another attempt would meet again.
  private static func of(_ code: TaskFailure.Code, _ spec: TaskSpec, _ retry: String) -> String? {
    switch code {
    case .destinationExists:
      let choices = spec.ifExists == .fail ? "skip or replace" : "replace"
      return "Submit a new task with --if-exists \(choices), or another --to; or, once that file is gone, \(retry)."
    case .destinationInvalid:
      return "Submit a new task with another --to; or, once what is in the way there is gone, \(retry)."
    case .fileTooLarge: return "Submit a new task with --to on a larger storage."
    case .digestMismatch:
      return "Submit a new task if --sha256 or --md5 was wrong; or, once the source is right, \(retry)."
    case .sizeMismatch: return "Submit a new task if --bytes was wrong; or, once the source is right, \(retry)."
    case .lengthUnknown: return "Submit a new task with --bytes, --sha256 or --md5."
    case .sourceInvalid: return "Submit a new task with another URL."
    case .http(404), .http(410): return "Submit a new task if the URL was wrong; or, once the file is there, \(retry)."
    case .http(401), .http(403):
      return "Submit a new task if it needs another --credential; or, once the source lets it in, \(retry)."
    case .credentialRefused:
      return "Add the host to the credential, in the workers' REELHAUL_CREDENTIALS file; then \(retry)."
    case .addressRefused: return "Start the workers with that network; then \(retry)."
    case .certificateUntrusted:
      return "Add the server's authority to the workers' REELHAUL_CA_FILE; then \(retry)."
    case .certificateExpired, .certificateMisnamed: return "Once the server has another certificate, \(retry)."
    default: return nil
    }
  }

  /// For errors after which a task waits, and is tried again by itself.
  private static func waiting(_ code: TaskFailure.Code) -> String? {
    switch code {
    case .credentialUnknown: "Add it to the workers' REELHAUL_CREDENTIALS file; the task goes on by itself then."
    case .credentialsUnusable: "Mend that worker's REELHAUL_CREDENTIALS file; the task goes on by itself then."
    default: nil
    }
  }
}
