import CommandLineKit
import ReelhaulSystem
import TaskAdvice
import TaskCore
import WorkerOptions

/// A task in text for people.
extension TaskDocument {
  var progressItem: ProgressItem {
    ProgressItem(
      title: title, status: status, phase: phase, bytesDone: bytesDone, bytesTotal: bytesTotal,
      rate: state == .running ? rate : nil, eta: eta)
  }

  /// Whether the error belongs to an earlier attempt.
  var hasLeftErrorBehind: Bool { state.isOwned || state == .succeeded }

  private var phase: ProgressItem.Phase {
    switch state {
    case .blocked, .queued: .waiting
    case .running, .publishing: .active
    case .succeeded: .done
    case .failed: .failed
    case .paused, .canceled: .stopped
    }
  }

  /// One line with the task's progress, for pipes.
  var line: String {
    var words = ["\(spec.id)", status]
    if let bytesTotal {
      words.append("\(ByteCount(bytesDone)) of \(ByteCount(bytesTotal))")
    } else if bytesDone > 0 {
      words.append("\(ByteCount(bytesDone))")
    }
    if state == .running, let rate { words.append(ByteCount(rate).rate) }
    if let eta { words.append("eta \(DurationText.clock(seconds: eta))") }
    if let error, !hasLeftErrorBehind { words.append("\(error.code): \(error.message)") }
    return DisplayWidth.printable((words + [title]).joined(separator: "  "))
  }
}

extension [TaskDocument] {
  /// How many are in each state, and their rate; nil if there are none. Of the states `more` there are others.
  func summary(more: Set<TaskState>) -> String? {
    guard !isEmpty else { return nil }
    let rate = reduce(0) { $0 + ($1.state == .running ? $1.rate ?? 0 : 0) }
    let counts = TaskState.allCases.compactMap { state in
      let count = self.count { $0.state == state }
      return count > 0 ? "\(count)\(more.contains(state) ? "+" : "") \(state.rawValue)" : nil
    }
    return counts.joined(separator: ", ") + (rate > 0 ? "; \(ByteCount(rate).rate)" : "")
  }
}
