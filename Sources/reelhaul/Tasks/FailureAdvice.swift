import TaskCore

/// What to do about a task's error. Another attempt does not help with all of them.
enum FailureAdvice {
  /// Nil if nothing went wrong, or nothing can be done.
  static func of(_ task: TaskDocument) -> String? {
    let retry = "'reelhaul retry \(task.spec.id)' tries again"
    switch task.state {
    case .failed: return task.error.flatMap { of($0.code, task.spec, retry) } ?? "\(retry)."
    case .canceled: return "\(retry)."
    case .queued, .paused: return task.error.flatMap { waiting($0.code) }
    case .blocked, .running, .publishing, .succeeded: return nil
    }
  }

  /// Where to read more about the first of these tasks, which did not succeed, and what to do. Nil if `undone` is
  /// empty.
  static func sentence(_ undone: [TaskDocument]) -> String? {
    undone.first.map { "'reelhaul show \($0.spec.id)' says more. \(of($0) ?? "")" }
  }

  /// Advice for errors that another attempt would meet again.
  private static func of(_ code: String, _ spec: TaskSpec, _ retry: String) -> String? {
    switch code {
    case "destination_exists":
      let choices = spec.ifExists == .fail ? "skip or replace" : "replace"
      return "Submit a new task with --if-exists \(choices), or another --to; or, once that file is gone, \(retry)."
    case "destination_invalid":
      return "Submit a new task with another --to; or, once nothing is in the way there, \(retry)."
    case "file_too_large": return "Submit a new task with --to on a larger storage."
    case "digest_mismatch":
      return "Submit a new task if --sha256 or --md5 was wrong; or, once the source is right, \(retry)."
    case "size_mismatch": return "Submit a new task if --bytes was wrong; or, once the source is right, \(retry)."
    case "length_unknown": return "Submit a new task with --bytes, --sha256 or --md5."
    case "source_invalid": return "Submit a new task with another URL."
    case "http_404", "http_410": return "Submit a new task if the URL was wrong; or, once the file is there, \(retry)."
    case "http_401", "http_403":
      return "Submit a new task if it needs another --credential; or, once the source allows the request, \(retry)."
    case "credential_refused":
      return "Add the host to the credential, in the workers' REELHAUL_CREDENTIALS file; then \(retry)."
    case "address_refused": return "Add the network to the workers' REELHAUL_ALLOW_NETWORKS; then \(retry)."
    case "certificate_untrusted":
      return "Add the server's authority to the workers' REELHAUL_CA_FILE; then \(retry)."
    case "certificate_expired", "certificate_misnamed": return "Once the server has another certificate, \(retry)."
    default: return nil
    }
  }

  /// Advice for errors after which a task waits and is tried again by itself.
  private static func waiting(_ code: String) -> String? {
    switch code {
    case "credential_unknown": "Add it to the workers' REELHAUL_CREDENTIALS file; the task then continues by itself."
    case "credentials_unusable": "Correct that worker's REELHAUL_CREDENTIALS file; the task then continues by itself."
    default: nil
    }
  }
}
