/// When a failed attempt is made again.
public struct RetryPolicy: Hashable, Sendable {
  public static let attempts = 1...100
  public static let intervalSeconds = 0...86_400

  /// Attempts in a row that make no progress, the first included; 1…100.
  public var maxAttempts: Int
  /// Seconds before attempt 2, 3, …; the last one repeats. Empty: exponential back-off with full jitter.
  public var intervals: [Int]

  public init(maxAttempts: Int = 8, intervals: [Int] = []) {
    self.maxAttempts = maxAttempts
    self.intervals = intervals
  }
}
