import ReelhaulSystem

/// Follows the bytes of one running task: its rate, and whether a change is worth publishing.
///
/// It is read in every round of the sampler, so at most one sample per round is published.
package struct ProgressMeter: Sendable {
  package struct Reading: Hashable, Sendable {
    package var bytesDone: Int64
    package var bytesTotal: Int64?
    /// Bytes per second.
    package var rate: Int64

    package init(bytesDone: Int64, bytesTotal: Int64?, rate: Int64) {
      self.bytesDone = bytesDone
      self.bytesTotal = bytesTotal
      self.rate = rate
    }
  }

  /// The time constant with which the rate follows changes.
  private static let smoothing = Duration.seconds(3)
  private static let renewalInterval = Duration.seconds(1)

  package private(set) var reading: Reading
  /// When the bytes last changed, or a pulse came, or the run began.
  package private(set) var lastProgress: BootInstant
  private var pulses = 0
  private var smoothedRate = 0.0
  /// When the run's first bytes came. Until the time constant is over, the rate is the average since then.
  private var movingSince: BootInstant?
  private var observedAt: BootInstant
  private var published: Reading
  private var renewed: Reading
  private var renewedAt: BootInstant?

  package init(bytesDone: Int64, bytesTotal: Int64?, now: BootInstant) {
    reading = Reading(bytesDone: max(0, bytesDone), bytesTotal: bytesTotal, rate: 0)
    // The initial values are known already, so only a change is published.
    published = reading
    renewed = reading
    lastProgress = now
    observedAt = now
  }

  /// `pulses` counts signs of life other than bytes.
  package mutating func observe(bytesDone: Int64, bytesTotal: Int64?, pulses: Int = 0, now: BootInstant) {
    let elapsed = observedAt.duration(to: now).seconds
    guard elapsed > 0 else { return }
    // A new generation begins at zero again, which must not give a negative rate.
    let rate = Double(max(0, bytesDone - reading.bytesDone)) / elapsed
    if movingSince == nil, bytesDone != reading.bytesDone { movingSince = observedAt }
    if let movingSince {
      let moving = min(Self.smoothing.seconds, movingSince.duration(to: now).seconds)
      smoothedRate += (rate - smoothedRate) * min(1, elapsed / moving)
    }
    observedAt = now
    if bytesDone != reading.bytesDone || pulses != self.pulses { lastProgress = now }
    self.pulses = pulses
    reading = Reading(
      bytesDone: bytesDone, bytesTotal: bytesTotal ?? reading.bytesTotal,
      rate: Int64(min(smoothedRate.rounded(), Self.highestRate)))
  }

  /// Far above any disk, and low enough for sums over a fleet.
  private static let highestRate = 1e15

  /// The sample for the `progress` topic, if something has changed since the last one.
  package mutating func takePublished() -> Reading? {
    guard reading != published else { return nil }
    published = reading
    return reading
  }

  /// The sample for the renewal: after a change of more than 1 % of the whole, or after any change once a second has
  /// passed.
  package mutating func takeRenewed(now: BootInstant) -> Reading? {
    guard reading != renewed else { return nil }
    if let renewedAt, now < renewedAt + Self.renewalInterval {
      let change = abs(reading.bytesDone - renewed.bytesDone)
      guard let total = reading.bytesTotal, change > total / 100 else { return nil }
    }
    renewed = reading
    renewedAt = now
    return reading
  }
}
