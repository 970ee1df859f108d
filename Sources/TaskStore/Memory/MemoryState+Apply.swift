import TaskCore

extension MemoryState {
  mutating func apply(_ command: Command) -> CommandOutcome {
    switch command {
    case .submit(let spec): return submit(spec)
    case .control(let control):
      if let known = inbox[control.id] {
        if case .refused = known { return known }
        return .duplicate
      }
      let outcome = carryOut(control.action, on: control.taskID)
      inbox[control.id] = outcome
      return outcome
    }
  }

  private mutating func submit(_ spec: TaskSpec) -> CommandOutcome {
    guard tasks[spec.id] == nil, !removed.contains(spec.id) else { return .duplicate }
    var task = MemoryTask(spec: spec, state: .queued, createdAt: now)
    task.waitsFor = Set(spec.after.filter { tasks[$0]?.state != .succeeded })
    task.state = spec.paused ? .paused : task.waitsFor.isEmpty ? .queued : .blocked
    tasks[spec.id] = task
    if task.state == .queued { enqueue(spec.id, notBefore: spec.notBefore) }
    publish(.submitted, [spec.id])
    return .applied
  }

  private mutating func carryOut(_ action: ControlAction, on id: UUID) -> CommandOutcome {
    guard let task = tasks[id] else {
      return .refused(code: "unknown_task", reason: "there is no task \(id)")
    }
    if let run = task.run { return carryOut(action, on: task, running: run) }

    switch (action, task.state) {
    case (.pause, .blocked), (.pause, .queued):
      tasks[id]?.state = .paused
      tasks[id]?.place = .resting
      publish(.paused, [id])
    case (.resume, .paused):
      release(id, event: .resumed)
    case (.cancel, .blocked), (.cancel, .queued), (.cancel, .paused):
      tasks[id]?.state = .canceled
      tasks[id]?.place = .resting
      tasks[id]?.finishedAt = now
      publish(.canceled, [id])
    case (.retry, .failed), (.retry, .canceled):
      tasks[id]?.attempt = 0
      tasks[id]?.error = nil
      release(id, event: .retrying)
    case (.remove, _):
      publish(.removed, [id])
      tasks[id] = nil
      removed.insert(id)
    case (.prioritize(let priority), .blocked), (.prioritize(let priority), .queued),
      (.prioritize(let priority), .paused):
      tasks[id]?.spec.priority = priority
      if case .ready = task.place { enqueue(id) }
      publish(.prioritized, [id])
    default:
      return illegal(action, task)
    }
    return .applied
  }

  private mutating func carryOut(
    _ action: ControlAction, on task: MemoryTask, running run: MemoryTask.Run
  ) -> CommandOutcome {
    let id = task.spec.id
    switch action {
    case .cancel:
      return intend(.cancel, id, run)
    case .pause where run.intent != .cancel:
      return intend(.pause, id, run)
    case .resume where run.intent == .pause:
      var run = run
      run.intent = nil
      tasks[id]?.place = .running(run)
    case .prioritize(let priority):
      tasks[id]?.spec.priority = priority
      publish(.prioritized, [id])
    default:
      return illegal(action, task)
    }
    return .applied
  }

  private mutating func intend(_ what: Intent, _ id: UUID, _ run: MemoryTask.Run) -> CommandOutcome {
    tasks[id]?.run?.intent = what
    return workers[run.worker].map { .intended(worker: $0.registration.boot) } ?? .applied
  }

  private func illegal(_ action: ControlAction, _ task: MemoryTask) -> CommandOutcome {
    .refused(
      code: "illegal_transition",
      reason: "\(action.name) is not possible while the task is \(task.effectiveState.rawValue)")
  }
}
