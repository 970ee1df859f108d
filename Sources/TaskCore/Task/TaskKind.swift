/// What sort of work a task is. Open: a handler registered with a worker may bring its own.
public struct TaskKind: RawRepresentable, Hashable, Sendable {
  public let rawValue: String

  public init(rawValue: String) {
    self.rawValue = rawValue
  }

  public static let download = TaskKind(rawValue: "download")
  public static let upload = TaskKind(rawValue: "upload")
  public static let copy = TaskKind(rawValue: "copy")
  public static let delete = TaskKind(rawValue: "delete")
  /// Does nothing and succeeds; for measuring everything around the work.
  public static let noop = TaskKind(rawValue: "noop")

  /// Those that every worker carries out, unless it is told to do without.
  public static let standard: [TaskKind] = [.download, .delete, .noop]

  /// Whether `name` can be a kind's: 1 to 32 letters, digits, `.`, `_` or `-`.
  package static func isName(_ name: String) -> Bool { TaskSpec.isName(name, limit: 32) }

  /// Whether a task of this kind reads from somewhere; a handler's own kind may not.
  public var needsSource: Bool {
    switch self {
    case .download, .upload, .copy, .delete: true
    default: false
    }
  }
}
