import ReelhaulSystem
import TaskCore

extension EventLoop {
  /// How many failures in a row are outlasted.
  private static let mostFailures = 5

  /// Asks or reads again after failures that may pass, where the next attempt would do much work anew. Throws the last of
  /// them, and `CancellationError` if it is not to go on after a pause.
  func patiently<Value: Sendable>(
    while goesOn: () -> Bool = { true }, _ ask: () async throws -> Value
  ) async throws -> Value {
    var failures = 0
    while true {
      do {
        return try await ask()
      } catch let failure as TaskFailure
        where failure.class == .retry && failure.code != .digestMismatch && failures < Self.mostFailures
      {
        failures += 1
        let asked = failure.retryAfter ?? 0
        guard asked <= UploadQueue.longestPause else { throw failure }
        try await sleep(for: max(.seconds(asked), .milliseconds(100 << failures)))
        guard goesOn() else { throw CancellationError() }
      }
    }
  }
}
