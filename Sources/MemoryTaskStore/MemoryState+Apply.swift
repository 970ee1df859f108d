import TaskCore
import TaskStore

extension MemoryState {
  mutating func apply(_ command: Command) -> CommandOutcome {
    switch command {
    case .submit(let spec): return submit(spec)
    case .control(let control):
      if let known = inbox[control.id] {
        if case .refused = known { return known }
        return .duplicate
      }
      let outcome = carryOut(control)
      inbox[control.id] = outcome
      return outcome
    }
  }

  private mutating func submit(_ spec: TaskSpec) -> CommandOutcome {
    guard tasks[spec.id] == nil, removed[spec.id] == nil else { return .duplicate }
    let waitsFor = Set(spec.after.filter { tasks[$0]?.machine.state != .succeeded && removed[$0] != true })
    let (machine, actions) = TaskMachine.submit(paused: spec.paused, waitsForOthers: !waitsFor.isEmpty)
    tasks[spec.id] = MemoryTask(spec: spec, machine: machine, waitsFor: waitsFor, createdAt: now)
    for action in actions { perform(action, on: spec.id) }
    return .applied
  }

  private mutating func carryOut(_ control: Command.Control) -> CommandOutcome {
    let id = control.taskID
    guard let before = tasks[id] else { return .refused(code: "unknown_task", reason: "there is no task \(id)") }
    if case .prioritize(before.spec.priority) = control.action, !before.machine.state.isFinal {
      return .applied  // It keeps its place in its line.
    }
    actor = control.actor
    defer { actor = nil }
    do throws(IllegalTransition) {
      let actions = try move(id, .control(control.action))
      if control.action == .retry {
        tasks[id]?.error = nil
        tasks[id]?.losses = 0
        tasks[id]?.bytesDone = before.checkpoint?.bytesDone ?? 0
      }
      if case .remove(let files) = control.action { leaveToCleanUp(before, files: files) }
      guard actions.contains(where: { if case .tellWorker = $0 { true } else { false } }) else { return .applied }
      return tasks[id].flatMap(boot(of:)).map { .intended(worker: $0) } ?? .applied
    } catch {
      return .refused(code: "illegal_transition", reason: "\(error)")
    }
  }
}
