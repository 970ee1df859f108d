import TaskCore

/// How often requests may fail in a row, and how long to wait after each failure. Pure.
struct RetryBudget: Hashable {
  /// How many failures in a row are followed by another try.
  let limit: Int
  /// The wait after the first failure, in milliseconds. It doubles with each further failure.
  let firstMilliseconds: Int64
  private(set) var failures = 0

  init(limit: Int, firstMilliseconds: Int64) {
    self.limit = limit
    self.firstMilliseconds = firstMilliseconds
  }

  /// Milliseconds to wait before the next try. Returns `nil` if there is no next try: too many have failed, or the
  /// server asks for a wait of more than 2 seconds, which is too long for a run.
  mutating func pause(after failure: TaskFailure) -> Int64? {
    failures += 1
    let asked = failure.retryAfter ?? 0
    guard failures <= limit, asked <= 2 else { return nil }
    return max(Int64(asked) * 1000, firstMilliseconds << (failures - 1))
  }

  /// Starts counting anew after progress.
  mutating func reset() {
    failures = 0
  }
}
