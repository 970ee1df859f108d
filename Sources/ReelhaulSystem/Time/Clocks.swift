import CReelhaulSystem

/// The machine's clocks. Code that makes decisions never reads them: the time is a parameter.
package enum Clocks {
  /// Nanoseconds since boot, including suspension. Leases and deadlines are measured with this clock.
  package static func boottime() -> Int64 { rh_boottime_ns() }

  /// Microseconds since 1970-01-01T00:00:00Z.
  package static func realtimeMicroseconds() -> Int64 { rh_realtime_ns() / 1000 }

  /// Milliseconds since 1970-01-01T00:00:00Z; 0 before.
  package static func realtimeMilliseconds() -> UInt64 { UInt64(max(0, rh_realtime_ns())) / 1_000_000 }
}
