/// Where signals come from: a reader of all partitions, or a test's list.
package protocol SignalSource: Sendable {
  /// Waits for signals; `nil` once the source is closed.
  func next() async throws -> [Signal]?
}
