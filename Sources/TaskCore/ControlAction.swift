/// What a control command asks for.
public enum ControlAction: Hashable, Sendable {
  case pause
  case resume
  case cancel
  case retry
  case remove
  case prioritize(Int)

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
}
