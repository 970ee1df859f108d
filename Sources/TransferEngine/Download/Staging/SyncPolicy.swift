import ReelhaulSystem

/// Decides when a staging file goes to stable storage, and when so much waits for that that nothing more may be received.
/// Pure: it is handed the time, in nanoseconds.
struct SyncPolicy: Hashable {
  /// The file is synced when so many bytes are not …
  let bytes: Int64
  /// … or so long after the last time.
  let interval: Int64
  /// For how long more than `bytes` may wait to be recorded.
  let exposure: Int64
  private var syncedAt: Int64
  private var recorded: Record

  private struct Record: Hashable {
    var bytes: Int64
    /// What was written before is recorded.
    var since: Int64
  }

  /// - Parameter recorded: the bytes of the file that are recorded already.
  init(bytes: Int64, interval: Duration, exposure: Duration, recorded: Int64 = 0, now: Int64) {
    self.bytes = bytes
    self.interval = interval.nanoseconds
    self.exposure = exposure.nanoseconds
    syncedAt = now
    self.recorded = Record(bytes: recorded, since: now)
  }

  /// Whether a sync is due of a file with so many bytes that are not on stable storage.
  func isDue(unsynced: Int64, now: Int64) -> Bool {
    unsynced > 0 && (unsynced >= bytes || now - syncedAt >= interval)
  }

  /// A sync begins.
  mutating func began(now: Int64) {
    syncedAt = now
  }

  /// The sync that began at `time` is recorded: `bytes` of the file in all.
  mutating func recorded(_ bytes: Int64, since time: Int64) {
    recorded = Record(bytes: bytes, since: time)
  }

  /// Whether too much of a file with so many written bytes would be lost in a crash: while a sync runs, nothing more is
  /// received.
  func mustWait(written: Int64, now: Int64) -> Bool {
    written - recorded.bytes >= bytes && now - recorded.since >= exposure
  }
}
