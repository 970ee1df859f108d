import ReelhaulSystem

/// Bounds how often something happens for each key: `burst` times at once, and then once an interval. It keeps one instant
/// for a key, and only for keys of late.
struct RateLimit<Key: Hashable & Sendable>: Sendable {
  let interval: Duration
  let burst: Int
  private let mostKeys: Int
  /// For each key, when all its events would have been admitted at an even pace.
  private var paces: [Key: BootInstant] = [:]

  init(every interval: Duration, burst: Int, mostKeys: Int = 4096) {
    self.interval = interval
    self.burst = burst
    self.mostKeys = mostKeys
  }

  /// How long the next event of this key must wait; nil if it may happen now.
  func wait(_ key: Key, at now: BootInstant) -> Duration? {
    guard let pace = paces[key] else { return nil }
    let wait = pace - now - interval * (burst - 1)
    return wait > .zero ? wait : nil
  }

  /// Counts an event.
  mutating func count(_ key: Key, at now: BootInstant) {
    if paces.count >= mostKeys, paces[key] == nil { forget(at: now) }
    paces[key] = max(paces[key] ?? now, now) + interval
  }

  /// Counts an event that may happen; returns how long one that may not must wait.
  mutating func admit(_ key: Key, at now: BootInstant) -> Duration? {
    if let wait = wait(key, at: now) { return wait }
    count(key, at: now)
    return nil
  }

  /// Does as if one event less had been counted.
  mutating func takeBack(_ key: Key) {
    if let pace = paces[key] { paces[key] = pace - interval }
  }

  private mutating func forget(at now: BootInstant) {
    paces = paces.filter { $0.value > now }
    // Too many at once: those with the most to wait for stay.
    if paces.count >= mostKeys {
      let kept = paces.sorted { $0.value > $1.value }.prefix(mostKeys / 2)
      paces = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
    }
  }
}
