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

  /// Whether no further failure is followed by another try.
  var isSpent: Bool { failures >= limit }

  /// Milliseconds to wait before the next try, at most: who waits takes a random part from one half on, so that not all
  /// try again at the same moment. Returns `nil` if there is no next try: too many have failed, or the server asks for a
  /// wait of more than 2 seconds, which is too long for a run.
  mutating func pause(after failure: TaskFailure) -> Int64? {
    failures += 1
    guard failures <= limit, let asked = asked(failure) else { return nil }
    return max(asked, firstMilliseconds << (failures - 1))
  }

  /// The longest pause, after a failure that does not count. Returns `nil` if the server asks for a wait that is too
  /// long.
  func pause(withoutCounting failure: TaskFailure) -> Int64? {
    asked(failure).map { max($0, firstMilliseconds << limit) }
  }

  private func asked(_ failure: TaskFailure) -> Int64? {
    let seconds = Int64(failure.retryAfter ?? 0)
    // Never earlier than the server says.
    return seconds <= 2 ? 2 * seconds * 1000 : nil
  }

  /// Starts counting anew after progress.
  mutating func reset() {
    failures = 0
  }
}
