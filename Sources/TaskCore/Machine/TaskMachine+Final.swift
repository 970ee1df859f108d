// The states that a task does not leave by itself.
extension TaskMachine {
  /// Can be removed.
  mutating func succeeded(_ event: Event) throws(IllegalTransition) -> [Action] {
    guard case .control(.remove) = event else { throw illegal(event) }
    return remove()
  }

  /// Can transition to: queued, blocked, or be removed.
  mutating func failed(_ event: Event) throws(IllegalTransition) -> [Action] {
    try stopped(event)
  }

  /// Can transition to: queued, blocked, or be removed.
  mutating func canceled(_ event: Event) throws(IllegalTransition) -> [Action] {
    try stopped(event)
  }

  private mutating func stopped(_ event: Event) throws(IllegalTransition) -> [Action] {
    switch event {
    case .dependenciesSatisfied:
      waitsForOthers = false
      return []
    case .control(.retry):
      attempt = 0
      return returnToQueue() + [publish(.retrying)]
    case .control(.remove): return remove()
    default: throw illegal(event)
    }
  }

  // MARK: Shared by all states

  /// Makes the task wait again: for its dependencies, or in its queue.
  mutating func returnToQueue() -> [Action] {
    state = waitsForOthers ? .blocked : .queued
    return waitsForOthers ? [] : [.enqueue(.back)]
  }

  mutating func remove() -> [Action] {
    isRemoved = true
    return [publish(.removed), .delete]
  }

  mutating func publish(_ kind: TaskEvent.Kind) -> Action {
    sequence += 1
    return .publish(kind)
  }

  func illegal(_ event: Event) -> IllegalTransition {
    let condition = isRemoved ? "removed" : intent == .cancel ? "being canceled" : state.rawValue
    return IllegalTransition(event: event.name, condition: condition)
  }
}
