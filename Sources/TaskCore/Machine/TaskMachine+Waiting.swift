// The states in which no worker owns the task and it may still run.
extension TaskMachine {
  /// Can transition to: queued, paused, canceled, or be removed.
  mutating func blocked(_ event: Event) throws(IllegalTransition) -> [Action] {
    switch event {
    case .dependenciesSatisfied:
      waitsForOthers = false
      state = .queued
      return [.enqueue(.back), publish(.unblocked)]
    case .control(.pause):
      state = .paused
      return [publish(.paused)]
    case .control(.cancel):
      state = .canceled
      return [publish(.canceled)]
    case .control(.prioritize(let priority)): return [.setPriority(priority), publish(.prioritized)]
    case .control(.remove): return remove()
    default: throw illegal(event)
    }
  }

  /// Can transition to: running, paused, canceled, or be removed.
  mutating func queued(_ event: Event) throws(IllegalTransition) -> [Action] {
    switch event {
    case .claimed:
      state = .running
      epoch += 1
      attempt += 1
      return [.dequeue, .beginRun, publish(.started)]
    case .control(.pause):
      state = .paused
      return [.dequeue, publish(.paused)]
    case .control(.cancel):
      state = .canceled
      return [.dequeue, publish(.canceled)]
    case .control(.prioritize(let priority)): return [.setPriority(priority), publish(.prioritized)]
    case .control(.remove): return [.dequeue] + remove()
    default: throw illegal(event)
    }
  }

  /// Can transition to: queued, blocked, canceled, or be removed.
  mutating func paused(_ event: Event) throws(IllegalTransition) -> [Action] {
    switch event {
    case .dependenciesSatisfied:
      waitsForOthers = false
      return []
    case .control(.resume): return returnToQueue() + [publish(.resumed)]
    case .control(.cancel):
      state = .canceled
      return [publish(.canceled)]
    case .control(.prioritize(let priority)): return [.setPriority(priority), publish(.prioritized)]
    case .control(.remove): return remove()
    default: throw illegal(event)
    }
  }
}
