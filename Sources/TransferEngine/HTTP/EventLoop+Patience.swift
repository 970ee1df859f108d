import ReelhaulSystem
import TaskCore

extension EventLoop {
  /// How many failures in a row are outlasted.
  private static let mostFailures = 5
  /// Seconds. A server that asks for a longer pause gets it between two attempts.
  static let longestPause = 10

  /// Asks or reads again after failures that may pass, where the next attempt would do much work anew. Throws the last of
  /// them, or the first that comes `limit` after the first one, and `CancellationError` if it is not to go on after a
  /// pause.
  func patiently<Value: Sendable>(
    for limit: Duration = .seconds(600), while goesOn: () -> Bool = { true }, _ ask: () async throws -> Value
  ) async throws -> Value {
    var failures = 0
    var deadline: BootInstant?
    while true {
      do {
        return try await ask()
      } catch let failure as TaskFailure
        where failure.class == .retry && failure.code != .digestMismatch && failures < Self.mostFailures
      {
        failures += 1
        let end = deadline ?? .now + limit
        deadline = end
        guard .now < end else { throw failure }
        let asked = failure.retryAfter ?? 0
        guard asked <= Self.longestPause else { throw failure }
        try await sleep(for: max(.seconds(asked), .milliseconds(100 << failures)))
        guard goesOn() else { throw CancellationError() }
      }
    }
  }
}
