import ReelhaulSystem
import Testing

/// Waits until `condition` holds, which another thread or process must bring about. Fails the test at the caller's
/// line after `limit`. The limit only ends hopeless waits; it does not say how soon the condition should hold.
package func eventually(
  _ what: @autoclosure () -> Comment, within limit: Duration = .seconds(180), every pause: Duration = .milliseconds(5),
  sourceLocation: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
) async throws {
  let deadline = Clocks.boottime() + limit.nanoseconds
  while try await !condition() {
    guard Clocks.boottime() < deadline else {
      Issue.record(what(), sourceLocation: sourceLocation)
      throw TimedOut()
    }
    try await Task.sleep(for: pause)
  }
}

package struct TimedOut: Error {}
