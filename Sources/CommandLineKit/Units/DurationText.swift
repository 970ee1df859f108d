import ReelhaulSystem

/// Durations, as people read and write them.
package enum DurationText {
  /// Parses `30s`, `250ms`, `1.5h`, `2m30s`, with units from the largest to the smallest. Nil for other text, negative
  /// values and a bare number.
  package static func parse(_ text: String) -> Duration? {
    guard !text.isEmpty else { return nil }
    var total = 0.0
    var larger = Double.infinity
    var rest = text[...]
    while !rest.isEmpty {
      let number = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
      rest = rest.dropFirst(number.count)
      let unit = rest.prefix { $0.isLetter }
      rest = rest.dropFirst(unit.count)
      guard number.first != ".", number.last != ".", let value = Double(number), let seconds = seconds(in: unit),
        seconds < larger
      else { return nil }
      larger = seconds
      total += value * seconds
    }
    return total < 1e11 ? .milliseconds(Int64((total * 1000).rounded())) : nil
  }

  private static func seconds(in unit: Substring) -> Double? {
    switch unit {
    case "ms": 0.001
    case "s", "sec": 1
    case "m", "min": 60
    case "h": 3600
    case "d": 86400
    default: nil
    }
  }

  /// A clock for waiting times: `0:07`, `12:30`, `1:02:03`, `3d 04:00`.
  package static func clock(seconds: Int64) -> String {
    let seconds = max(0, seconds)
    let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60)
    if days > 0 { return "\(days)d \(two(hours)):\(two(minutes))" }
    if hours > 0 { return "\(hours):\(two(minutes)):\(two(seconds % 60))" }
    return "\(minutes):\(two(seconds % 60))"
  }

  /// The two largest units, for ages: `850 ms`, `12 s`, `3 min`, `2 h 5 min`, `4 d`.
  package static func brief(_ duration: Duration) -> String {
    let milliseconds = duration.milliseconds
    let seconds = milliseconds / 1000
    return switch milliseconds {
    case ..<1000: "\(max(0, milliseconds)) ms"
    case ..<60_000: "\(seconds) s"
    case ..<3_600_000: "\(seconds / 60) min"
    case ..<86_400_000: "\(seconds / 3600) h \(seconds / 60 % 60) min"
    default: "\(seconds / 86400) d"
    }
  }

  private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
