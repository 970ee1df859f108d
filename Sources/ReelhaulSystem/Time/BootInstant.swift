/// A point in time of `CLOCK_BOOTTIME`, which never jumps, and which advances while the process is stopped or the
/// machine sleeps. Leases, deadlines and waits are measured with it.
///
/// What decides takes it as an argument; only the shells read the clock. `ContinuousClock` reads the same clock, but
/// its instants cannot be made from a number, as tests and the simulation of a fleet need.
package struct BootInstant: InstantProtocol {
  /// Since the machine was started.
  package var nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// Later than every time that comes.
  package static let distantFuture = BootInstant(nanoseconds: .max)

  /// Saturated: a duration without end leads to the ``distantFuture``.
  package func advanced(by duration: Duration) -> BootInstant {
    let (sum, overflows) = nanoseconds.addingReportingOverflow(duration.nanoseconds)
    return overflows ? .distantFuture : BootInstant(nanoseconds: sum)
  }

  package func duration(to other: BootInstant) -> Duration {
    .nanoseconds(other.nanoseconds - nanoseconds)
  }

  package static func < (a: BootInstant, b: BootInstant) -> Bool { a.nanoseconds < b.nanoseconds }

  package static func + (a: BootInstant, b: Duration) -> BootInstant { a.advanced(by: b) }

  package static func - (a: BootInstant, b: Duration) -> BootInstant { a.advanced(by: .zero - b) }

  package static func - (a: BootInstant, b: BootInstant) -> Duration { b.duration(to: a) }
}

extension BootInstant {
  package static var now: BootInstant { BootInstant(nanoseconds: Clocks.boottime()) }

  package var hasPassed: Bool { self <= .now }

  /// From now until then, never negative.
  package var remaining: Duration { max(.zero, BootInstant.now.duration(to: self)) }
}
