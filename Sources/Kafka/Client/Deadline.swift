import Glibc

/// A point on the monotonic clock, for poll threads: they wait in milliseconds and outlive no suspend worth counting.
struct Deadline: Comparable {
  /// Milliseconds of CLOCK_MONOTONIC.
  private let milliseconds: Int64

  static func now() -> Deadline { Deadline(milliseconds: clock()) }

  static func after(_ duration: Duration) -> Deadline {
    let (seconds, attoseconds) = duration.components
    return Deadline(milliseconds: clock() + seconds * 1000 + attoseconds / 1_000_000_000_000_000)
  }

  var hasPassed: Bool { remaining == 0 }

  /// Milliseconds left, never negative.
  var remaining: Int32 { Int32(clamping: max(0, milliseconds - Self.clock())) }

  static func < (a: Deadline, b: Deadline) -> Bool { a.milliseconds < b.milliseconds }

  static func clock() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  private init(milliseconds: Int64) { self.milliseconds = milliseconds }
}
