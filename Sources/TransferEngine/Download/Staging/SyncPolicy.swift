import ReelhaulSystem

/// Decides when a staging file is synced, when a run stands still, and when so many bytes wait to be recorded that no
/// more may be received.
/// Pure: the caller passes the time, in nanoseconds.
struct SyncPolicy: Hashable {
  /// The file is synced when it has this many unsynced bytes …
  let bytes: Int64
  /// … or this long after the last sync began.
  var interval: Int64
  /// For how long more than `bytes` may wait to be recorded.
  let exposure: Int64
  private var syncedAt: Int64
  private var arrivedAt: Int64
  /// The longest time without bytes of late.
  private var gap: Int64 = 0
  private var recorded: Record

  private struct Record: Hashable {
    var bytes: Int64
    /// All bytes written before this time are recorded.
    var since: Int64
  }

  /// - Parameter recorded: How many bytes of the file are recorded already.
  init(bytes: Int64, interval: Duration, exposure: Duration, recorded: Int64 = 0, now: Int64) {
    self.bytes = bytes
    self.interval = interval.nanoseconds
    self.exposure = exposure.nanoseconds
    syncedAt = now
    arrivedAt = now
    self.recorded = Record(bytes: recorded, since: now)
  }

  /// Whether a sync is due for a file with `unsynced` bytes that are not on stable storage.
  func isDue(unsynced: Int64, now: Int64) -> Bool {
    unsynced > 0 && (unsynced >= bytes || now - syncedAt >= interval)
  }

  /// Bytes arrived.
  mutating func arrived(now: Int64) {
    let elapsed = max(0, now - arrivedAt)
    // A gap is forgotten after many times its length.
    gap = max(elapsed, gap - elapsed / 16)
    arrivedAt = max(arrivedAt, now)
  }

  /// When the run stands still, unless bytes arrive before: what it has is then recorded at once. `nil` if its bytes
  /// come in lumps, so that the interval is over first.
  var stallsAt: Int64? {
    let patience = max(Self.shortestStall, 4 * min(gap, interval))
    return patience < interval ? arrivedAt + patience : nil
  }

  private static let shortestStall = Duration.milliseconds(200).nanoseconds

  /// A sync begins.
  mutating func began(now: Int64) {
    syncedAt = now
  }

  /// The bytes of the sync that began at `time` are recorded; `bytes` of the file are recorded in total.
  mutating func recorded(_ bytes: Int64, since time: Int64) {
    recorded = Record(bytes: bytes, since: time)
  }

  /// Whether a crash would lose too many of the `written` bytes. While a sync runs, no more bytes are then received.
  func mustWait(written: Int64, now: Int64) -> Bool {
    written - recorded.bytes >= bytes && now - recorded.since >= exposure
  }
}
