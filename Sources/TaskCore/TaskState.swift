/// Where a task is.
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
