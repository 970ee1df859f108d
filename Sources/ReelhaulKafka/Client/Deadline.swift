import ReelhaulSystem

/// A point in time, for threads that wait in milliseconds.
struct Deadline: Comparable {
  /// Nanoseconds since boot.
  private let time: Int64

  static func now() -> Deadline { Deadline(time: Clocks.boottime()) }

  static func after(_ duration: Duration) -> Deadline { Deadline(time: Clocks.boottime() + duration.nanoseconds) }

  func advanced(by duration: Duration) -> Deadline { Deadline(time: time + duration.nanoseconds) }

  var hasPassed: Bool { time <= Clocks.boottime() }

  /// The remaining milliseconds, rounded up and never negative.
  var remaining: Int32 { Int32(clamping: max(0, (time - Clocks.boottime() + 999_999) / 1_000_000)) }

  static func < (a: Deadline, b: Deadline) -> Bool { a.time < b.time }
}
