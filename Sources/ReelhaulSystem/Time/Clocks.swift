import CReelhaulSystem

/// The machine's clocks. Deciding code never reads them: it is handed the time.
package enum Clocks {
  /// Nanoseconds since boot, suspension included: what leases and deadlines are measured with.
  package static func boottime() -> Int64 { rh_boottime_ns() }

  /// Microseconds since 1970-01-01T00:00:00Z.
  package static func realtimeMicroseconds() -> Int64 { rh_realtime_ns() / 1000 }

  /// Milliseconds since then; 0 before.
  package static func realtimeMilliseconds() -> UInt64 { UInt64(max(0, rh_realtime_ns())) / 1_000_000 }
}
