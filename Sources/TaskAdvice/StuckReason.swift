import TaskCore
import TaskStore

/// Why tasks do not run, in words, and the list of them.
package enum StuckReason {
  /// A word of a closed list: `cap`, `pause`, `schedule`, `dependency`, `worker` or `storage`.
  package static func word(_ held: HeldTasks) -> String {
    switch held.reason {
    case .limit(_, _, let limit): limit == 0 ? "pause" : "cap"
    case .paused: "pause"
    case .scheduled: "schedule"
    case .retrying(let code, _): isOfStorage(code) ? "storage" : "schedule"
    case .blocked: "dependency"
    case .kind: "worker"
    case .storage: "storage"
    }
  }

  /// A sentence that says how many wait for what, and what to do about it if something can be done.
  package static func sentence(_ held: HeldTasks) -> String {
    let (tasks, wait) =
      held.tasks == 1 ? ("1 task", "waits") : ("\(held.isAtLeast ? "at least " : "")\(held.tasks) tasks", "wait")
    switch held.reason {
    case .limit(let scope, let name, 0):
      return "\(tasks) \(wait) because \(what(scope, name)) is paused: its limit is 0."
    case .limit(let scope, let name, let limit):
      return "\(tasks) \(wait) for a free place: the limit of \(what(scope, name)) is \(limit)."
    case .paused:
      return
        "\(tasks) \(held.tasks == 1 ? "is" : "are") paused until somebody resumes \(held.tasks == 1 ? "it" : "them")."
    case .scheduled:
      return "\(tasks) \(wait) for the time that \(held.tasks == 1 ? "it was" : "they were") submitted for."
    case .retrying(let code, let kind):
      let cause = kind == .wait ? "were handed back" : "failed"
      let was = held.tasks == 1 && kind == .wait ? "was handed back" : cause
      return "\(tasks) \(was) with \(code.rawValue) and will be tried again."
    case .blocked: return "\(tasks) \(wait) for other tasks to succeed."
    case .kind(let kind):
      return "\(tasks) \(wait) for a worker with a handler for the kind \(kind.rawValue): no live worker has one."
    case .storage(let names):
      return "\(tasks) \(wait) for a worker with the storage \(names): no live worker can use it."
    }
  }

  /// The query of the list that has the tasks, and perhaps others that wait. Of two storages it names the first.
  package static func query(_ held: HeldTasks) -> [(name: String, value: String)] {
    switch held.reason {
    case .limit(.total, _, _), .limit(_, "", _): [("state", "queued")]
    case .limit(.storage, let names, _), .storage(let names):
      [("state", "queued"), ("text", "storage://\(names.split(separator: ",").first ?? "")/")]
    case .limit(let scope, let name, _): [("state", "queued"), (scope.rawValue, name)]
    case .paused: [("state", "paused")]
    case .scheduled: [("state", "scheduled")]
    case .retrying: [("state", "retrying")]
    case .blocked: [("state", "blocked")]
    case .kind(let kind): [("state", "queued"), ("kind", kind.rawValue)]
    }
  }

  private static func what(_ scope: LimitScope, _ name: String) -> String {
    if scope == .total { return "the whole fleet" }
    return name.isEmpty ? "tasks without a \(scope.rawValue)" : "\(scope.rawValue) \(name)"
  }

  private static func isOfStorage(_ code: TaskFailure.Code) -> Bool {
    code == .diskFull || code.rawValue.hasPrefix("storage_") || code.rawValue.hasPrefix("staging_")
  }
}
