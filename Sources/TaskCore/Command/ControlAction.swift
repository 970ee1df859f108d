/// What a control command asks for.
public enum ControlAction: Hashable, Sendable {
  case pause
  case resume
  case cancel
  case retry
  /// `files`: the files that the task made are deleted, too.
  case remove(files: Bool)
  case prioritize(Int)

  /// The task's files stay.
  public static let remove = ControlAction.remove(files: false)

  /// The word in commands, on the command line and in URLs.
  public var name: String {
    switch self {
    case .pause: "pause"
    case .resume: "resume"
    case .cancel: "cancel"
    case .retry: "retry"
    case .remove: "remove"
    case .prioritize: "prioritize"
    }
  }

  /// All of them, in the order that people read them.
  public static let names = ["pause", "resume", "cancel", "retry", "remove", "prioritize"]

  /// `nil` where there is no such action; `priority` is that of `prioritize`, which needs one, and `files` that of
  /// `remove`.
  public init?(name: String, priority: Int? = nil, files: Bool = false) {
    switch name {
    case "pause": self = .pause
    case "resume": self = .resume
    case "cancel": self = .cancel
    case "retry": self = .retry
    case "remove": self = .remove(files: files)
    case "prioritize":
      guard let priority else { return nil }
      self = .prioritize(priority)
    default: return nil
    }
  }
}
