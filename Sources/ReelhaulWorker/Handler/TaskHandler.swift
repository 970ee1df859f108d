import ReelhaulTasks
import TaskCore

/// A kind of task that a worker can carry out.
///
/// ```swift
/// struct Thumbnails: TaskHandler {
///   struct Parameters: Codable, Sendable { var video: String, count: Int }
///   struct Checkpoint: Codable, Sendable { var made: Int }
///   static let kind = "thumbnails"
///
///   func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> NoOutput {
///     for index in (context.lastCheckpoint?.made ?? 0)..<parameters.count {
///       try await makeThumbnail(index, of: parameters.video)
///       context.report(done: Int64(index + 1), total: Int64(parameters.count))
///       try await context.checkpoint(Checkpoint(made: index + 1))
///     }
///     return NoOutput()
///   }
/// }
///
/// try await ReelhaulWorker.run(handlers: [Thumbnails()])
/// ```
///
/// One value of the type serves all runs, at the same time and on any thread.
public protocol TaskHandler: TaskDefinition {
  /// The data that a run records so that another worker can continue: at most 64 KiB of JSON.
  associatedtype Checkpoint: Codable & Sendable = NoCheckpoint

  /// Attempts, back-off, timeout and concurrency of the kind.
  var policy: TaskPolicy { get }

  /// Carries out one attempt.
  ///
  /// It may be called again for the same task after a crash, a pause or a hand-over. It then gets
  /// ``TaskContext/lastCheckpoint``, and repeats the work after that checkpoint. When the run must stop, its Swift task
  /// is canceled. The handler then records a checkpoint if it has made progress, and throws `CancellationError` within
  /// a minute (in a drain within `REELHAUL_DRAIN_SECONDS`, 25 by default); otherwise the worker gives the run up.
  ///
  /// Throw ``TaskError`` to say what a failure means. Any other error is a failed attempt, which is tried again as
  /// ``policy`` says. After a `CancellationError` the reason of the stop decides: `timedOut` and `stalled` are failed
  /// attempts, any other hands the task back. Thrown without a stop, it makes the task wait.
  func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> Output

  /// Removes what runs of a task that was canceled or removed left elsewhere: a temporary object, an upload that was
  /// begun, a file of a storage. It may be called again, and must then find nothing to do. `checkpoint` is the last one.
  ///
  /// It may take 30 seconds; then it is canceled, and called again later, as it is after an error.
  func cleanUp(_ parameters: Parameters, after checkpoint: Checkpoint, storage: TaskStorage) async throws
}

extension TaskHandler {
  public var policy: TaskPolicy { TaskPolicy() }
  public func cleanUp(_ parameters: Parameters, after checkpoint: Checkpoint, storage: TaskStorage) async throws {}
}

/// The checkpoint type of a kind that records no checkpoints: each run begins anew.
public struct NoCheckpoint: Codable, Hashable, Sendable {}

/// How the tasks of a kind are run. What a task itself sets (`--max-attempts`, `--retry-after`) has priority, each for
/// itself; 8 attempts count as not set.
public struct TaskPolicy: Hashable, Sendable {
  /// How many attempts may fail, the first included: 1 to 100.
  public var maxAttempts: Int
  /// When the next attempt begins.
  public var backoff: Backoff
  /// How long an attempt may take, up to 366 days; nil for no limit. After that time it is stopped and has failed.
  public var timeout: Duration?
  /// How many tasks of the kind run at once in the whole fleet, those of its aliases included; nil: any number.
  /// `reelhaul limit kind NAME N` wins.
  public var concurrency: Int?

  public enum Backoff: Hashable, Sendable {
    /// A random time up to 1, 2, 4 … 300 seconds.
    case exponential
    /// The seconds before attempt 2, 3, …; the last value repeats. 1 to 100 values, each from 0 to 86,400.
    case seconds([Int])
  }

  public init(
    maxAttempts: Int = 8, backoff: Backoff = .exponential, timeout: Duration? = nil, concurrency: Int? = nil
  ) {
    self.maxAttempts = maxAttempts
    self.backoff = backoff
    self.timeout = timeout
    self.concurrency = concurrency
  }
}

extension TaskPolicy {
  /// Longer ones would not fit into the worker's clocks.
  private static let longestTimeout = Duration.seconds(366 * 86_400)

  /// What is wrong with the policy; nil if a worker can follow it.
  var complaint: String? {
    func text(_ range: ClosedRange<Int>) -> String { "\(range.lowerBound) to \(range.upperBound)" }
    let (attempts, interval, intervals) = (RetryPolicy.attempts, RetryPolicy.intervalSeconds, 1...100)
    if !attempts.contains(maxAttempts) { return "maxAttempts is \(text(attempts)), not \(maxAttempts)" }
    if let concurrency, concurrency < 0 { return "concurrency is not negative, but it is \(concurrency)" }
    if let timeout, timeout <= .zero { return "timeout is longer than zero, but it is \(timeout)" }
    if let timeout, timeout > Self.longestTimeout { return "timeout is at most 366 days: use nil for no limit" }
    guard case .seconds(let seconds) = backoff else { return nil }
    if !intervals.contains(seconds.count) { return "backoff has \(text(intervals)) values, not \(seconds.count)" }
    return seconds.first { !interval.contains($0) }
      .map { "each value of backoff is \(text(interval)) seconds, not \($0)" }
  }
}
