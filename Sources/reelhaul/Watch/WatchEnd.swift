import TaskCore

/// The sentence for a user who stops waiting for tasks.
enum WatchEnd {
  /// What the user waited for.
  enum Awaited: Sendable {
    /// The end of the tasks.
    case end
    /// The effect of a command that was sent.
    case effect
  }

  private static let named = 3

  /// `held` are the tasks that do not continue by themselves.
  static func sentence(_ tasks: [UniqueID], held: Set<UniqueID>, awaited: Awaited) -> String {
    let list = tasks.prefix(named).map { "\($0)" }.joined(separator: " ") + (tasks.count > named ? " …" : "")
    let isOne = tasks.count == 1
    let count = tasks.count { held.contains($0) }
    let what =
      switch awaited {
      case .effect: "The command was sent"
      case .end where count == 0: isOne ? "The task continues" : "The tasks continue"
      case .end where count == tasks.count: isOne ? "The task does not change" : "The tasks do not change"
      case .end: "The tasks continue, except \(count) of them"
      }
    return "\(what): 'reelhaul watch \(list)' follows, 'reelhaul cancel \(list)' stops."
  }
}
