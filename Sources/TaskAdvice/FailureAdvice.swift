import TaskCore

/// What to do about a task's error. Another attempt does not help with all of them.
package enum FailureAdvice {
  /// Nil if nothing went wrong, or nothing can be done. `retrying` are the arguments of the command that tries again: the
  /// task's, if it is nil.
  package static func of(_ task: TaskDocument, retrying arguments: String? = nil) -> String? {
    let retry = "'reelhaul retry \(arguments ?? "\(task.spec.id)")' tries again"
    switch task.state {
    case .failed: return task.error.flatMap { of($0, task.spec, retry) } ?? "\(retry)."
    case .canceled: return "\(retry)."
    case .queued: return task.error.flatMap { waiting($0.code, "the task then continues by itself") }
    case .paused: return task.error.flatMap { waiting($0.code, "then resume the task") }
    case .blocked, .running, .publishing, .succeeded: return nil
    }
  }

  /// Where to read more about the first of these tasks, which did not succeed, and what to do. Nil if `undone` is
  /// empty.
  package static func sentence(_ undone: [TaskDocument]) -> String? {
    undone.first.map { "'reelhaul show \($0.spec.id)' says more. \(of($0) ?? "")" }
  }

  /// Advice for errors that another attempt would meet again.
  private static func of(_ error: TaskFailure, _ spec: TaskSpec, _ retry: String) -> String? {
    let to = spec.kind == .copy ? "DESTINATION" : "--to"
    // Handlers of other kinds see neither --if-exists nor what is expected.
    let isStandard = TaskKind.standard.contains(spec.kind)
    switch error.code {
    case .destinationExists where !isStandard:
      return "Submit a new task with another --to; or, once that file is gone, \(retry)."
    case .digestMismatch where !isStandard, .sizeMismatch where !isStandard, .fetchesDiffer where !isStandard:
      return nil
    case .destinationExists:
      let choices = spec.ifExists == .fail ? "skip or replace" : "replace"
      return "Submit a new task with --if-exists \(choices), or another \(to); or, once that file is gone, \(retry)."
    case .destinationInvalid:
      return "Submit a new task with another \(to); or, once nothing is in the way there, \(retry)."
    case .fileTooLarge: return "Submit a new task with \(to) where files may be as large."
    case .digestMismatch:
      return "Submit a new task if --sha256 or --md5 was wrong; or, once the bytes are right at both ends, \(retry)."
    case .sizeMismatch:
      return "Submit a new task if --bytes was wrong; or, once the length is right at both ends, \(retry)."
    case .lengthUnknown: return "Submit a new task with --bytes, --sha256 or --md5, or with --allow-unframed."
    case .sourceChanging where spec.kind == .download:
      return "Submit a new task with --sha256 or --md5; or, once the source stays the same, \(retry)."
    case .fetchesDiffer:
      return "Submit a new task with --bytes, --sha256 or --md5; or, once the source stays the same, \(retry)."
    case .answerLost where isAtS3(spec):
      return """
        Look at the store whether it has the object. To send it again, submit a new task, with --if-exists replace or \
        another \(to) if it has.
        """
    case .answerLost:
      return """
        Look at the server whether it has taken the file. To send it again, submit a new task: with --method PUT if the \
        server takes that, or with --header 'Idempotency-Key: …' if it knows that field, and the task repeats what it must.
        """
    case .isDirectory: return "Submit a new task with --recursive."
    case .sourceInvalid: return "Submit a new task with another URL."
    case .http(404), .http(410), .init(rawValue: "s3_no_such_key"), .init(rawValue: "s3_no_such_version"):
      return "Submit a new task if the URL was wrong; or, once what it names is there, \(retry)."
    case .http(401), .http(403):
      return "Submit a new task if it needs another --credential; or, once the server allows the request, \(retry)."
    case .credentialRefused:
      return """
        Add to the credential what the error names, its host or its s3 form, in the workers' REELHAUL_CREDENTIALS file; then \
        \(retry). Or submit a new task with another --credential.
        """
    case .credentialNeeded: return "Submit a new task with --credential."
    case .parametersInvalid: return "Submit a new task with right --parameters; the error names what is wrong."
    case .lostRepeatedly:
      return """
        The logs of the workers that ran it say why they ended: a crash, or too little memory. Once that is mended, \
        \(retry).
        """
    case .addressGivesCredentials:
      return "Check where the URL came from, and where it leads: such an address hands out a machine's credentials."
    case .addressRefused: return "Add the network to the workers' REELHAUL_ALLOW_NETWORKS; then \(retry)."
    case .certificateUntrusted:
      return """
        Add the server's authority to the workers' REELHAUL_CA_FILE, which replaces the system's authorities and must have \
        those, too; then \(retry).
        """
    case .certificateExpired:
      return "Once the server has another certificate, or the worker's clock is right, \(retry)."
    case .certificateMisnamed: return "Once the server has another certificate, \(retry)."
    default: return nil
    }
  }

  private static func isAtS3(_ spec: TaskSpec) -> Bool {
    if case .s3? = spec.destination.flatMap({ try? ResourceURL($0) }) { true } else { false }
  }

  /// Advice for errors after which a task waits and is tried again by itself. `rest` says how it goes on.
  private static func waiting(_ code: TaskFailure.Code, _ rest: String) -> String? {
    switch code {
    case .credentialUnknown: "Add it to the workers' REELHAUL_CREDENTIALS file; \(rest)."
    case .credentialsUnusable: "Correct on that worker what the error names; \(rest)."
    case .storageVolumeGone:
      """
      Mount the former volume; or, if it is there and has lost its mark, write the former id into .reelhaul/volume. If it \
      is lost for good, 'reelhaul cancel' and then 'reelhaul retry' begin anew.
      """
    default: nil
    }
  }
}
