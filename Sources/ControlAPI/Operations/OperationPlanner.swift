import ReelhaulSystem
import TaskCore
import TaskStore

/// Decides the next step of an operation from what the store says of it. Every step can be repeated: what was sent twice
/// has the same ids, and what was noted once is not noted again.
struct OperationPlanner: Sendable {
  enum Step: Hashable, Sendable {
    /// Send the commands of a batch that was noted, and note that Kafka has them.
    case send(OperationBatch)
    /// Find up to so many tasks, and note them as a batch.
    case walk(Int)
    /// Count what became of the commands of these batches, as far as that is known of all of a batch.
    case count([OperationBatch])
    /// Unless something was counted before: count what is known of them, and end with the error.
    case giveUp([OperationBatch], error: String)
    /// A canceled operation sends nothing more: count what is known of these, of which Kafka may have a part.
    case drop([OperationBatch])
    case finish
  }

  /// How many commands one batch has at most.
  static let batch = 500
  /// How many batches may wait to be applied (not for runs to stop), which bounds what an operation puts before the
  /// commands of others.
  static let window = 8
  /// How long commands may wait until any is applied. Then the operation gives up.
  static let patience = Duration.seconds(3600)

  /// The steps to take now, in this order; empty if nothing can be done but wait for an older operation to end, or for
  /// commands to be applied.
  static func steps(_ operation: TaskOperation, _ batches: [OperationBatch]) -> [Step] {
    let (sent, unsent) = (batches.filter(\.isSent), batches.filter { !$0.isSent })
    let isRunning = operation.state == .running
    if !isRunning, !unsent.isEmpty { return [.drop(unsent)] }
    if let first = unsent.first { return [.send(first)] }
    if sent.isEmpty, operation.progress.isWalked || !isRunning { return [.finish] }

    var steps: [Step] = []
    let isStuck = !sent.isEmpty && operation.progress.idle >= patience
    let (applied, open) = (sent.filter(\.isApplied), sent.filter { !$0.isApplied })
    if !sent.isEmpty { steps.append(.count(open + applied.prefix(window))) }
    if isStuck {
      // They may have been applied while nobody drove the operation.
      steps.append(
        .giveUp(
          sent,
          error: """
            \(sent.reduce(0) { $0 + $1.tasks.count }) commands were not all applied within an hour after they were sent: \
            does a worker run? They may still be applied
            """))
    } else if isRunning, !operation.progress.isWalked, operation.waitsFor == nil, open.count < window {
      steps.append(.walk(batch))
    }
    return steps
  }

  /// What to note of tasks that were found: those that allow the action get a command.
  static func note(_ found: [FoundTask], for action: ControlAction) -> OperationStep {
    var step = OperationStep()
    step.matched = found.count
    for task in found {
      if allows(action, task) {
        step.tasks.append(task.id)
      } else {
        step.refusals["illegal_transition", default: 0] += 1
      }
    }
    return step
  }

  static func allows(_ action: ControlAction, _ task: FoundTask) -> Bool {
    allows(action, in: task.state) || action == .resume && task.isPausing
  }

  /// Those of the tasks that match: where no states are asked for, a running task matches `resume` only while it is pausing.
  static func matching(_ found: [FoundTask], _ operation: TaskOperation) -> [FoundTask] {
    guard operation.action == .resume, case .filter(let filter) = operation.selection, filter.states.isEmpty else {
      return found
    }
    return found.filter { allows(.resume, $0) || !$0.state.isOwned }
  }

  /// Whether the state allows the action.
  private static func allows(_ action: ControlAction, in state: TaskState) -> Bool {
    var machine = TaskMachine(state: state)
    return (try? machine.handle(.control(action))) != nil
  }

  /// The states in which tasks can be found: those asked for, or else those that may allow the action.
  static func states(_ filter: OperationFilter, for action: ControlAction) -> [TaskStatus] {
    guard filter.states.isEmpty else { return filter.states }
    let states = TaskState.allCases.filter { allows(action, in: $0) || action == .resume && $0.isOwned }
    return states.compactMap { TaskStatus(rawValue: $0.rawValue) }
  }
}
