// The states in which a worker owns the task. A control becomes an intent, which takes effect when the run ends.
extension TaskMachine {
  /// Can transition to: publishing, succeeded, queued, paused, canceled, failed.
  mutating func running(_ event: Event) throws(IllegalTransition) -> [Action] {
    guard event == .publishing else { return try owned(event) }
    state = .publishing
    return [publish(.publishing)]
  }

  /// Can transition to: succeeded, queued, paused, canceled, failed.
  mutating func publishing(_ event: Event) throws(IllegalTransition) -> [Action] {
    try owned(event)
  }

  private mutating func owned(_ event: Event) throws(IllegalTransition) -> [Action] {
    switch event {
    case .succeeded:
      intent = nil
      state = .succeeded
      return [.endRun, publish(.succeeded), .satisfyDependents]
    case .failed(let delay):
      if let stop = followIntent() { return stop }
      guard let delay else {
        state = .failed
        return [.endRun, publish(.failed)]
      }
      return retry(after: delay)
    case .progressed(let delay):
      attempt = 0
      return followIntent() ?? retry(after: delay)
    case .released(let delay): return handBack(delay == .zero ? .front : .after(delay))
    case .leaseExpired: return handBack(.front)
    case .control(let action): return try intend(action)
    default: throw illegal(event)
    }
  }

  private mutating func retry(after delay: Duration) -> [Action] {
    state = .queued
    return [.endRun, .enqueue(.after(delay)), publish(.retrying)]
  }

  /// The end of an attempt that does not count.
  private mutating func handBack(_ place: QueuePlace) -> [Action] {
    attempt = max(0, attempt - 1)
    if let stop = followIntent() { return stop }
    state = .queued
    return [.endRun, .enqueue(place), publish(.released)]
  }

  /// Carries out a pending intent; returns `nil` if there is none.
  private mutating func followIntent() -> [Action]? {
    guard let intent else { return nil }
    self.intent = nil
    switch intent {
    case .pause:
      state = .paused
      return [.endRun, publish(.paused)]
    case .cancel:
      state = .canceled
      return [.endRun, publish(.canceled)]
    }
  }

  private mutating func intend(_ action: ControlAction) throws(IllegalTransition) -> [Action] {
    switch (action, intent) {
    case (.pause, nil), (.pause, .pause):
      intent = .pause
      return [.tellWorker(.pause)]
    case (.cancel, _):
      intent = .cancel
      return [.tellWorker(.cancel)]
    case (.resume, .pause):
      intent = nil
      return [.withdrawIntent]
    case (.prioritize(let priority), _): return [.setPriority(priority), publish(.prioritized)]
    case (.pause, .cancel), (.resume, .cancel), (.resume, nil), (.retry, _), (.remove, _):
      throw illegal(.control(action))
    }
  }
}
