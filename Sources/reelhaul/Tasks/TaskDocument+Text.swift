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
