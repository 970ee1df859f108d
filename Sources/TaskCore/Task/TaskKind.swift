/// The kind of work of a task. The set is open: a worker may register handlers for its own kinds.
public struct TaskKind: RawRepresentable, Hashable, Sendable {
  public let rawValue: String

  public init(rawValue: String) {
    self.rawValue = rawValue
  }

  public static let download = TaskKind(rawValue: "download")
  public static let upload = TaskKind(rawValue: "upload")
  public static let copy = TaskKind(rawValue: "copy")
  public static let delete = TaskKind(rawValue: "delete")
  /// Does nothing and succeeds, to measure everything around the work.
  public static let noop = TaskKind(rawValue: "noop")

  /// The kinds that every worker carries out, unless it is configured otherwise.
  public static let standard: [TaskKind] = [.download, .upload, .copy, .delete, .noop]

  /// Whether `name` can be the name of a kind: 1 to 32 letters, digits, `.`, `_` or `-`.
  package static func isName(_ name: String) -> Bool { TaskSpec.isName(name, limit: 32) }

  /// Whether a task of this kind must have a source. Kinds of your own need none.
  public var needsSource: Bool { isTransfer }

  /// Whether the workers' own engines move or delete files for it.
  package var isTransfer: Bool {
    switch self {
    case .download, .upload, .copy, .delete: true
    default: false
    }
  }
}
