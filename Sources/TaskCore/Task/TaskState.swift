/// The state of a task.
public enum TaskState: String, Sendable, CaseIterable {
  case blocked
  case queued
  case running
  case publishing
  case succeeded
  case paused
  case canceled
  case failed

  /// Whether a worker owns the task.
  public var isOwned: Bool { self == .running || self == .publishing }

  public var isFinal: Bool {
    switch self {
    case .succeeded, .canceled, .failed: true
    case .blocked, .queued, .running, .publishing, .paused: false
    }
  }
}

/// A task's state in the form that people see. For a queued task it also says why the task does not run yet.
package enum TaskStatus: String, Sendable, CaseIterable {
  case blocked
  case queued
  /// Queued, but must not run before its time.
  case scheduled
  /// Queued after a failure, and must not run before its time.
  case retrying
  case running
  case publishing
  case succeeded
  case paused
  case canceled
  case failed
}

extension TaskDocument {
  package func status(now: Timestamp) -> TaskStatus {
    switch state {
    case .queued:
      guard let runAt, runAt > now else { return .queued }
      return error == nil ? .scheduled : .retrying
    case .blocked: return .blocked
    case .running: return .running
    case .publishing: return .publishing
    case .succeeded: return .succeeded
    case .paused: return .paused
    case .canceled: return .canceled
    case .failed: return .failed
    }
  }
}
