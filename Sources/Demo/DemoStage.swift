import TaskCore

/// Where a demonstration is seen.
package protocol DemoStage: Sendable {
  /// Draws the tasks as they are now.
  mutating func show(_ tasks: [TaskDocument])
  /// Tells an event of the demonstration.
  mutating func say(_ text: String)
  /// Nothing is drawn any more. Called once, also after a failure.
  func end()
}
