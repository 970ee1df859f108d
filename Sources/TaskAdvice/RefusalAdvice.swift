import TaskCore

/// What to do if a task's state does not allow a command.
package enum RefusalAdvice {
  package static func of(_ action: ControlAction, _ task: UniqueID, in state: TaskState) -> String {
    switch (action, state) {
    case (.remove, .running), (.remove, .publishing): "Cancel it first: 'reelhaul cancel --wait \(task)'."
    case (.pause, .paused): "'reelhaul resume \(task)' continues it."
    case (.retry, .paused): "'reelhaul resume \(task)' continues it."
    case (.resume, .failed), (.resume, .canceled): "'reelhaul retry \(task)' queues it again."
    case (.pause, .failed), (.pause, .canceled):
      "It does not run. 'reelhaul retry \(task)' queues it again; then it can be paused."
    case (.prioritize, .failed), (.prioritize, .canceled):
      "It does not wait. 'reelhaul retry \(task)' queues it again; then its priority can be changed."
    case (.cancel, .succeeded), (.cancel, .failed), (.cancel, .canceled):
      "There is nothing left to stop. 'reelhaul remove \(task)' deletes its record."
    case (.retry, .succeeded): "It has succeeded. To do it again, submit another task."
    case (.retry, _): "Only failed and canceled tasks can be retried; 'reelhaul show \(task)' shows its state."
    case (.resume, .succeeded), (.pause, _), (.prioritize, _): "It has ended: there is nothing left to do."
    case (.resume, _): "It is not paused; 'reelhaul show \(task)' shows its state."
    case (.cancel, _), (.remove, _): "'reelhaul show \(task)' shows its state."
    }
  }
}
