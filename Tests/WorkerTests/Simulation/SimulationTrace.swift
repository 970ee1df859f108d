import ReelhaulSystem
import TaskCore

/// An invariant does not hold: what broke, the seed that shows it again, and the last steps that led there.
struct BrokenInvariant: Error, CustomStringConvertible {
  let description: String
}

/// The last things that happened. A line becomes text only if it is printed.
struct SimulationTrace {
  private struct Line {
    var at: BootInstant
    /// nil: it concerns the whole fleet.
    var task: UniqueID?
    var text: () -> String
  }

  private static let kept = 4000
  private static let printed = 30
  private var lines: [Line] = []

  mutating func add(_ text: @escaping () -> String, of task: UniqueID?, at now: BootInstant) {
    if lines.count == 2 * Self.kept { lines.removeFirst(Self.kept) }
    lines.append(Line(at: now, task: task, text: text))
  }

  /// The last lines that concern `task` or the whole fleet; without a task, of all.
  func text(of task: UniqueID?) -> String {
    lines.filter { task == nil || $0.task == nil || $0.task == task }.suffix(Self.printed)
      .map { "  \($0.at.nanoseconds / 1_000_000) ms  \($0.task.map { "task \($0.low): " } ?? "")\($0.text())" }
      .joined(separator: "\n")
  }
}
