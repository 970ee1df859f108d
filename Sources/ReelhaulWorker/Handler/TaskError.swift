import TaskCore

/// What a failure of a handler means for its task.
public struct TaskError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Meaning: Hashable, Sendable {
    case permanent
    case retry(after: Duration?)
    case wait(Duration)
  }

  /// A stable snake_case word for programs and metrics.
  public var code: String
  /// One sentence for people.
  public var message: String
  package var meaning: Meaning

  /// No attempt will succeed: the task fails now.
  public static func permanent(_ message: String, code: String = "failed") -> TaskError {
    TaskError(code: code, message: message, meaning: .permanent)
  }

  /// Another attempt may succeed, not before `after` has passed; this one counts. `after`: up to an hour; nil: as the
  /// policy says.
  public static func retry(_ message: String, after: Duration? = nil, code: String = "failed") -> TaskError {
    TaskError(code: code, message: message, meaning: .retry(after: after))
  }

  /// The task cannot run now through no fault of its own: it waits for `duration`, 5 seconds at least and up to an
  /// hour, and the attempt does not count.
  public static func wait(_ message: String, for duration: Duration, code: String = "waiting") -> TaskError {
    TaskError(code: code, message: message, meaning: .wait(duration))
  }

  public var description: String { message }
}

/// This run does not own its task any more: another worker may run it. Stop, and touch nothing.
public struct OwnershipLostError: Error, Hashable, Sendable, CustomStringConvertible {
  public init() {}

  public var description: String { "the run does not own its task any more" }
}

extension TaskFailure {
  /// The failure that an error of a handler is. Its text is bounded, and what looks like a secret is masked.
  init(_ error: any Error) {
    let (code, text, meaning) =
      (error as? TaskError).map { ($0.code, $0.message, $0.meaning) }
      ?? ("handler_error", "\(type(of: error)): \(error)", .retry(after: nil))
    let message = SecretMask.masked(text, limit: TaskFailure.textLimit)
    self =
      switch meaning {
      case .permanent: TaskFailure(code: code, message: message, class: .fail)
      case .retry(let after): TaskFailure(code: code, message: message, class: .retry, retryAfter: after?.wholeSeconds)
      case .wait(let duration):
        TaskFailure(code: code, message: message, class: .wait, retryAfter: duration.wholeSeconds)
      }
  }

  private static let textLimit = 1000
}

extension Duration {
  /// Rounded up.
  fileprivate var wholeSeconds: Int {
    Int(clamping: components.seconds) + (components.attoseconds > 0 ? 1 : 0)
  }
}
