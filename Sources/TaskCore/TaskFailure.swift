/// Why an attempt ended without success, and what that means for the task.
public struct TaskFailure: Error, Hashable, Sendable {
  /// What a failure asks for; it is decided where the failure is seen, and nowhere else.
  public enum Class: String, Sendable, CaseIterable {
    /// Another attempt may succeed; it counts.
    case retry
    /// No attempt will succeed.
    case fail
    /// Not the task's fault (disk full, volume gone …): it waits and no attempt is counted.
    case wait
  }

  public var code: Code
  /// One sentence for people, free of secrets and of signed query strings.
  public var message: String
  public var `class`: Class
  /// Seconds the server or the host asked to wait at least.
  public var retryAfter: Int?

  public init(code: Code, message: String, class: Class, retryAfter: Int? = nil) {
    self.code = code
    self.message = message
    self.class = `class`
    self.retryAfter = retryAfter
  }

  /// Whether the task may succeed by itself later.
  public var isRetryable: Bool { `class` != .fail }
}
