/// The states of one task and every legal move between them.
///
/// Pure: an event goes in, and a new state and its actions come out. If the event is not legal, it throws
/// ``IllegalTransition`` and changes nothing. It has no clock and no I/O: times come with the events. Every store
/// follows it. The diagram in docs/state-machine.md is generated from it.
public struct TaskMachine: Hashable, Sendable {
  public internal(set) var state: TaskState
  /// The pending intent; only a task that runs or is being published has one.
  public internal(set) var intent: Intent?
  /// Whether a task that this one waits for has not succeeded yet.
  public internal(set) var waitsForOthers: Bool
  /// Attempts that count, the current one included.
  public internal(set) var attempt: Int
  /// Raised by every claim; names the owner in all its writes.
  public internal(set) var epoch: Int
  /// The number of the last event, from 1.
  public internal(set) var sequence: Int
  public internal(set) var isRemoved = false

  /// A task in the state that a store has recorded.
  public init(
    state: TaskState, intent: Intent? = nil, waitsForOthers: Bool = false, attempt: Int = 0, epoch: Int = 0,
    sequence: Int = 1
  ) {
    self.state = state
    self.intent = intent
    self.waitsForOthers = waitsForOthers
    self.attempt = attempt
    self.epoch = epoch
    self.sequence = sequence
  }

  /// Returns a new task and the actions of its store. The task is `paused` if it was submitted paused, otherwise
  /// `blocked` if it waits for other tasks, otherwise `queued`.
  public static func submit(paused: Bool, waitsForOthers: Bool) -> (TaskMachine, [Action]) {
    var task = TaskMachine(state: .queued, waitsForOthers: waitsForOthers, sequence: 0)
    if paused { task.state = .paused } else if waitsForOthers { task.state = .blocked }
    let actions = task.state == .queued ? [.enqueue(.back), task.publish(.submitted)] : [task.publish(.submitted)]
    return (task, actions)
  }

  /// Moves the task, or throws and changes nothing.
  public mutating func handle(_ event: Event) throws(IllegalTransition) -> [Action] {
    guard !isRemoved else { throw illegal(event) }
    return switch state {
    case .blocked: try blocked(event)
    case .queued: try queued(event)
    case .running: try running(event)
    case .publishing: try publishing(event)
    case .succeeded: try succeeded(event)
    case .paused: try paused(event)
    case .canceled: try canceled(event)
    case .failed: try failed(event)
    }
  }
}

/// A pause or cancel that waits for the end of a run. The worker stops the run and hands the task back. The intent
/// decides the task's next state if the run ends without success; if the run succeeds first, the intent has no effect.
public enum Intent: String, Sendable, CaseIterable {
  case pause
  case cancel
}

/// A move that a task's state does not allow. The task is unchanged.
public struct IllegalTransition: Error, Hashable, Sendable {
  /// The name of the event.
  public let event: String
  /// The task's state, or that it is being canceled or is removed.
  public let condition: String
}

extension IllegalTransition: CustomStringConvertible {
  public var description: String { "\(event) is not possible while the task is \(condition)" }
}
