import TaskCore

/// What to do where a task's state does not allow a command.
enum RefusalAdvice {
  static func of(_ action: ControlAction, _ task: UniqueID, in state: TaskState) -> String {
    switch (action, state) {
    case (.remove, .running), (.remove, .publishing): "Cancel it first: 'reelhaul cancel --wait \(task)'."
    case (.pause, .paused): "'reelhaul resume \(task)' lets it go on."
    case (.retry, .paused): "'reelhaul resume \(task)' lets it go on."
    case (.resume, .failed), (.resume, .canceled): "'reelhaul retry \(task)' queues it again."
    case (.pause, .failed), (.pause, .canceled):
      "It does not run; 'reelhaul retry \(task)' queues it again, and then it can be paused."
    case (.prioritize, .failed), (.prioritize, .canceled):
      "It does not wait; 'reelhaul retry \(task)' queues it again, and then it can be given another priority."
    case (.cancel, .succeeded), (.cancel, .failed), (.cancel, .canceled):
      "There is nothing left to stop; 'reelhaul remove \(task)' forgets it."
    case (.retry, .succeeded): "What it fetched is in its place; 'reelhaul download' hands in another task."
    case (.retry, _): "Only failed and canceled tasks are retried; 'reelhaul show \(task)' says how it stands."
    case (.resume, .succeeded), (.pause, _), (.prioritize, _): "It has ended: there is nothing left to do."
    case (.resume, _): "It is not paused; 'reelhaul show \(task)' says how it stands."
    case (.cancel, _), (.remove, _): "'reelhaul show \(task)' says how it stands."
    }
  }
}
