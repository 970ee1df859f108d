/// A move that a task's state does not allow. The task is unchanged.
public struct IllegalTransition: Error, Hashable, Sendable {
  /// The name of the event.
  public let event: String
  /// What the task is: its state, or that it is being canceled or is removed.
  public let condition: String
}

extension IllegalTransition: CustomStringConvertible {
  public var description: String { "\(event) is not possible while the task is \(condition)" }
}
