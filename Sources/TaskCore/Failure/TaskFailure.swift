/// Why an attempt ended without success, and what that means for the task.
public struct TaskFailure: Error, Hashable, Sendable {
  /// The consequence of a failure. Only the code that detects the failure decides it.
  public enum Class: String, Sendable, CaseIterable {
    /// Another attempt may succeed; the failed one counts.
    case retry
    /// No attempt will succeed.
    case fail
    /// The task is not at fault (disk full, volume gone …): it waits, and the attempt does not count.
    case wait
  }

  public var code: Code
  /// One sentence for people, without secrets and without signed query strings.
  public var message: String
  public var `class`: Class
  /// The shortest wait in seconds, if the server or the host asks for one.
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
