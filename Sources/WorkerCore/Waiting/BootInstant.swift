import ReelhaulSystem

/// A point in time of `CLOCK_BOOTTIME`. This clock never jumps, and goes on while the process is stopped or the
/// machine sleeps.
///
/// Code that makes decisions takes the time as a parameter; only the actors around it read the clock.
package struct BootInstant: InstantProtocol {
  package var nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  package func advanced(by duration: Duration) -> BootInstant {
    BootInstant(nanoseconds: nanoseconds + duration.nanoseconds)
  }

  package func duration(to other: BootInstant) -> Duration {
    .nanoseconds(other.nanoseconds - nanoseconds)
  }

  package static func < (a: BootInstant, b: BootInstant) -> Bool { a.nanoseconds < b.nanoseconds }

  package static func + (a: BootInstant, b: Duration) -> BootInstant { a.advanced(by: b) }

  package static func - (a: BootInstant, b: Duration) -> BootInstant { a.advanced(by: .zero - b) }
}

extension BootInstant {
  package static var now: BootInstant { BootInstant(nanoseconds: Clocks.boottime()) }
}
