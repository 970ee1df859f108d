import TaskCore

/// Shows a demonstration.
package protocol DemoStage: Sendable {
  /// Draws the tasks as they are now.
  mutating func show(_ tasks: [TaskDocument])
  /// Shows an event of the demonstration.
  mutating func say(_ text: String)
  /// Ends the drawing. Called once, also after a failure.
  func end()
}
