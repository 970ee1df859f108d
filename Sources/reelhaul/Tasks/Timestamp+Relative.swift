import CommandLineKit
import ReelhaulSystem
import TaskCore
import WorkerOptions

extension Timestamp {
  /// How long ago, or how far ahead: `3 min ago`, `in 12 s`.
  var relative: String {
    let distance = microseconds - Clocks.realtimeMicroseconds()
    let text = DurationText.brief(.microseconds(abs(distance)))
    return distance > 0 ? "in \(text)" : "\(text) ago"
  }
}
