/// An event that a task in this state cannot meet.
public struct IllegalTransition: Error, Hashable, Sendable {
  public var state: TaskState
  /// The event's name, such as `resume`.
  public var event: String
  /// Why not, for people.
  public var reason: String

  public init(state: TaskState, event: String, reason: String) {
    self.state = state
    self.event = event
    self.reason = reason
  }
}

extension IllegalTransition: CustomStringConvertible {
  public var description: String { "cannot \(event): \(reason)" }
}
