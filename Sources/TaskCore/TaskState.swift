/// Where a task is. `running` and `publishing` are the two states in which a worker owns it.
public enum TaskState: String, Sendable, CaseIterable {
  case blocked
  case queued
  case running
  case publishing
  case succeeded
  case paused
  case canceled
  case failed

  public var isFinal: Bool {
    switch self {
    case .succeeded, .canceled, .failed: true
    case .blocked, .queued, .running, .publishing, .paused: false
    }
  }
}
