import ReelhaulCodec
import TaskCore

/// An error of a handler that says what happens to its task.
public struct TaskError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Meaning: Hashable, Sendable {
    case permanent
    case retry(after: Duration?)
    case wait(Duration)
  }

  /// A stable snake_case name for programs and metrics: letters, digits, `_`, `-` and `.`, and what is behind the 64th is
  /// cut off. In the place of any other text the task has `failed`, or `waiting` after ``wait(_:for:code:)``.
  public var code: String
  /// One sentence for people.
  public var message: String
  package var meaning: Meaning

  /// No attempt will succeed: the task fails now.
  public static func permanent(_ message: String, code: String = "failed") -> TaskError {
    TaskError(code: code, message: message, meaning: .permanent)
  }

  /// Another attempt may succeed; this one counts. The next attempt begins when `after`, up to an hour, has passed, or
  /// as the policy says if `after` is nil.
  public static func retry(_ message: String, after: Duration? = nil, code: String = "failed") -> TaskError {
    TaskError(code: code, message: message, meaning: .retry(after: after))
  }

  /// The task cannot run now, and is not at fault: it waits for `duration`, up to an hour of it, and at least for a random
  /// time of 5 to 10 seconds, which doubles with each of the first three returns. The attempt does not count.
  public static func wait(_ message: String, for duration: Duration, code: String = "waiting") -> TaskError {
    TaskError(code: code, message: message, meaning: .wait(duration))
  }

  public var description: String { message }
}

/// This run no longer owns its task, and another worker may run it. Stop, and change nothing any more.
public struct OwnershipLostError: Error, Hashable, Sendable, CustomStringConvertible {
  public init() {}

  public var description: String { "the run no longer owns its task" }
}

extension TaskFailure {
  /// The failure for an error of a handler.
  init(_ error: any Error) {
    let (code, text, meaning) =
      (error as? TaskError).map { ($0.code, $0.message, $0.meaning) }
      ?? ("handler_error", "\(type(of: error)): \(error)", .retry(after: nil))
    let word = code.prefix(bytes: 64)
    let standard = if case .wait = meaning { "waiting" } else { "failed" }
    let failureCode = TaskFailure.Code(rawValue: TaskSpec.isName(word, limit: 64) ? word : standard)
    let message = Self.message(text)
    self =
      switch meaning {
      case .permanent: TaskFailure(code: failureCode, message: message, class: .fail)
      case .retry(let after):
        TaskFailure(code: failureCode, message: message, class: .retry, retryAfter: after?.wholeSeconds)
      case .wait(let duration):
        TaskFailure(code: failureCode, message: message, class: .wait, retryAfter: duration.wholeSeconds)
      }
  }

  private static let textLimit = 1000

  /// The text of a handler's code as that of a failure: limited in length, without what the store refuses, and with parts
  /// masked that look like secrets.
  static func message(_ text: String) -> String {
    SecretMask.masked(text.storable(limit: 16 * textLimit), limit: textLimit)
  }
}

extension String {
  /// At most `limit` bytes.
  func storable(limit: Int) -> String { prefix(bytes: limit).storable }
}

extension Duration {
  /// Rounded up, and within what a task can wait: a handler may compute any duration.
  fileprivate var wholeSeconds: Int {
    let (seconds, attoseconds) = min(max(self, .zero), .seconds(RetryPolicy.longestRetryAfter)).components
    return Int(seconds) + (attoseconds > 0 ? 1 : 0)
  }
}
