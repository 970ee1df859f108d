import TaskCore

/// How often requests may fail in a row, and how long to wait after each failure. Pure.
struct RetryBudget: Hashable {
  /// Failures in a row that are followed by another try.
  let limit: Int
  /// The wait after the first failure in milliseconds; it doubles with each.
  let firstMilliseconds: Int64
  private(set) var failures = 0

  init(limit: Int, firstMilliseconds: Int64) {
    self.limit = limit
    self.firstMilliseconds = firstMilliseconds
  }

  /// Milliseconds to wait before the next try; `nil` where there is none: too many tries have failed, or the server asks
  /// for more patience than a run should have.
  mutating func pause(after failure: TaskFailure) -> Int64? {
    failures += 1
    let asked = failure.retryAfter ?? 0
    guard failures <= limit, asked <= 2 else { return nil }
    return max(Int64(asked) * 1000, firstMilliseconds << (failures - 1))
  }

  /// There is progress.
  mutating func reset() {
    failures = 0
  }
}
