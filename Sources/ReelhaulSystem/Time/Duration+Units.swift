extension Duration {
  /// Seconds with their fraction.
  package var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }

  /// Whole units, rounded towards zero, limited to the range of `Int64`.
  package var milliseconds: Int64 { whole(perSecond: 1000) }

  package var microseconds: Int64 { whole(perSecond: 1_000_000) }

  package var nanoseconds: Int64 { whole(perSecond: 1_000_000_000) }

  private func whole(perSecond: Int64) -> Int64 {
    let (seconds, attoseconds) = components
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: perSecond)
    let (sum, exceeds) = whole.addingReportingOverflow(attoseconds / (1_000_000_000_000_000_000 / perSecond))
    if overflows || exceeds { return seconds < 0 ? .min : .max }
    return sum
  }
}
