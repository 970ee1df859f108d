extension TaskMachine {
  /// The moves as a Mermaid state diagram.
  public static var diagram: String {
    var lines = ["stateDiagram-v2"]
    for arrow in arrows {
      lines.append("  \(arrow.from?.rawValue ?? "[*]") --> \(arrow.to?.rawValue ?? "removed"): \(arrow.label)")
    }
    lines.append("  removed --> [*]")
    return lines.joined(separator: "\n") + "\n"
  }

  /// The moves as a Markdown table, one line per arrow.
  public static var table: String {
    var lines = ["| from | to | by |", "|---|---|---|"]
    for arrow in arrows {
      lines.append("| \(arrow.from?.rawValue ?? "–") | \(arrow.to?.rawValue ?? "removed") | \(arrow.label) |")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private struct Arrow {
    let from: TaskState?
    let to: TaskState?
    let label: String
  }

  /// Moves with the same start and end become one arrow.
  private static var arrows: [Arrow] {
    var ends: [[TaskState?]] = []
    for move in transitions where !ends.contains([move.from, move.to]) { ends.append([move.from, move.to]) }
    return ends.map { end in
      let moves = transitions.filter { $0.from == end[0] && $0.to == end[1] }
      let labels = ([nil] + Intent.allCases).compactMap { intent -> String? in
        let events = moves.filter { $0.intent == intent }.map(\.event)
        guard !events.isEmpty else { return nil }
        return events.joined(separator: ", ") + (intent.map { " with a \($0.rawValue) pending" } ?? "")
      }
      return Arrow(from: end[0], to: end[1], label: labels.joined(separator: "; "))
    }
  }
}
