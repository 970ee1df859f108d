/// The action of a control command.
public enum ControlAction: Hashable, Sendable {
  case pause
  case resume
  case cancel
  case retry
  /// With `files`, the files that the task made are deleted too.
  case remove(files: Bool)
  case prioritize(Int)

  /// Removes the task but not its files.
  public static let remove = ControlAction.remove(files: false)

  /// The name in commands, on the command line and in URLs.
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

  /// All names, in the order in which they are shown to people.
  public static let names = ["pause", "resume", "cancel", "retry", "remove", "prioritize"]

  /// Returns `nil` if there is no such action. `priority` belongs to `prioritize`, which requires it, and `files` to
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
