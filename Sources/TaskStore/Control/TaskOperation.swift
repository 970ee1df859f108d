import TaskCore

/// An operation sends one command to each of many tasks.
package struct TaskOperation: Hashable, Sendable {
  package enum State: String, Sendable, CaseIterable {
    case running, done
    /// No further command is sent.
    case canceled
    case failed
  }

  /// The tasks of an operation. It touches none that is younger than itself.
  package enum Selection: Hashable, Sendable {
    case filter(OperationFilter)
    /// At most ``mostIDs``.
    case ids([UniqueID])
  }

  /// An older operation that has to end first, because it may touch the same tasks.
  package struct Awaited: Hashable, Sendable {
    package var id: UniqueID
    package var action: ControlAction

    package init(id: UniqueID, action: ControlAction) {
      self.id = id
      self.action = action
    }
  }

  package static let mostIDs = 10_000
  /// How many of one actor may be under way.
  package static let mostUnfinished = 100

  package var id: UniqueID
  package var action: ControlAction
  package var selection: Selection
  /// The order in which it looks at the tasks of a filter. Those that get a place in a line get it in their order; any
  /// others are mostly among the newest of very many that have ended.
  package var order: TaskOrder
  /// How many ids it was given. In a list, one that has ended has the number alone.
  package var idCount = 0
  /// The only queues whose tasks it may touch; nil for all.
  package var queues: [String]?
  package var actor: String?
  package var createdAt: Timestamp
  package var state = State.running
  /// Nil as long as commands may be sent or were sent and are not counted.
  package var finishedAt: Timestamp?
  package var error: String?
  /// The oldest one that it waits for.
  package var waitsFor: Awaited?
  package var progress = OperationProgress()

  package init(
    id: UniqueID, action: ControlAction, selection: Selection, queues: [String]? = nil, actor: String? = nil,
    createdAt: Timestamp
  ) {
    self.id = id
    self.action = action
    self.selection = selection
    order =
      switch action {
      case .resume, .retry, .prioritize: .oldestFirst
      case .pause, .cancel, .remove: .newestFirst
      }
    if case .ids(let ids) = selection { idCount = ids.count }
    self.queues = queues
    self.actor = actor
    self.createdAt = createdAt
  }
}

/// How far an operation is.
package struct OperationProgress: Hashable, Sendable {
  /// The last task that was looked at, in the operation's order; nil before the first.
  package var position: TaskCursor?
  /// Of given ids: how many were looked at.
  package var lookedAt = 0
  package var isWalked = false
  /// Tasks that were found.
  package var matched: Int64 = 0
  /// Commands that Kafka has.
  package var sent: Int64 = 0
  package var applied: Int64 = 0
  /// Tasks whose state did not allow it when they were found, for which no command is sent; and refused commands.
  package var refused: Int64 = 0
  package var refusals: [String: Int64] = [:]
  /// The time since a command was last sent or counted.
  package var idle = Duration.zero

  package init() {}
}

/// Selects the tasks of an operation. An empty list, and nil, match every task.
package struct OperationFilter: Hashable, Sendable {
  /// ``TaskStatus/queued`` selects all queued tasks, whatever they wait for.
  package var states: [TaskStatus] = []
  package var queues: [String] = []
  package var kinds: [TaskKind] = []
  /// Hosts of sources, or of the destinations of uploads.
  package var hosts: [String] = []
  /// Codes of the last error.
  package var codes: [String] = []
  /// Labels that a task must have, all of them: `name` or `name=value`.
  package var labels: [String] = []
  /// A part of the id, the source or the destination, in any case of letters.
  package var text: String?
  /// Created then or later.
  package var after: Timestamp?
  package var before: Timestamp?

  package init() {}
}

/// A task that was found, with its state at that moment.
package struct FoundTask: Hashable, Sendable {
  package var id: UniqueID
  package var state: TaskState
  /// Whether it still runs although it was told to pause, which `resume` withdraws.
  package var isPausing: Bool

  package init(id: UniqueID, state: TaskState, isPausing: Bool = false) {
    self.id = id
    self.state = state
    self.isPausing = isPausing
  }
}

/// One look at a part of the tasks.
package struct TaskWalk: Hashable, Sendable {
  package var tasks: [FoundTask] = []
  /// Where the next look begins; nil at the end.
  package var next: TaskCursor?

  package init() {}
}

/// Commands of an operation whose outcomes are not counted yet.
package struct OperationBatch: Hashable, Sendable {
  package var number: Int64
  package var tasks: [UniqueID]
  package var isSent: Bool
  /// All were applied or refused. Runs may still be stopping.
  package var isApplied: Bool

  package init(number: Int64, tasks: [UniqueID], isSent: Bool, isApplied: Bool = false) {
    self.number = number
    self.tasks = tasks
    self.isSent = isSent
    self.isApplied = isApplied
  }
}

/// What an operation notes after a look.
package struct OperationStep: Hashable, Sendable {
  /// The tasks that get a command.
  package var tasks: [UniqueID] = []
  package var matched = 0
  /// The tasks that get none, by the code of the reason.
  package var refusals: [String: Int64] = [:]
  package var position: TaskCursor?
  package var lookedAt = 0
  package var isAtEnd = false

  package init() {}
}

/// An actor has as many operations under way as it may have.
package struct TooManyOperations: Error, Hashable, Sendable, CustomStringConvertible {
  package var description: String {
    "\(TaskOperation.mostUnfinished) operations have not ended: wait for one, or cancel it"
  }
}

/// Keeps operations, and how far they are. All that it returns tell what they wait for. A process works on an operation
/// while it holds its lease; what it notes after that changes nothing, or would be the same if another process noted it.
package protocol OperationStore: Sendable {
  /// Creates it, unless there is one with this id. The time is the store's. Throws ``TooManyOperations``.
  func createOperation(_ operation: TaskOperation) async throws -> TaskOperation
  /// The time that an operation would have if it were created now.
  func operationTime() async throws -> Timestamp
  func operation(_ id: UniqueID) async throws -> TaskOperation?
  /// The newest ones; with `queues`, only those that may touch no other queue.
  func operations(limit: Int, within queues: Set<String>?) async throws -> [TaskOperation]
  /// No further command is sent. Changes nothing if it has ended. Returns nil if there is no such operation.
  func cancelOperation(_ id: UniqueID) async throws -> TaskOperation?

  /// Takes or keeps unfinished operations that no other driver has, the oldest first: all of them, or `only` one.
  func takeOperations(
    _ driver: UniqueID, seconds: Int, limit: Int, only: UniqueID?
  ) async throws -> [TaskOperation]
  /// Up to `limit` tasks after a position, or the first ones. Looks at a bounded number of tasks, so it may find fewer.
  func walk(
    _ filter: OperationFilter, _ order: TaskOrder, after position: TaskCursor?, limit: Int
  ) async throws -> TaskWalk
  /// The tasks among `ids` that exist, were created before `time`, and are in one of `queues` (nil for all).
  func find(_ ids: [UniqueID], before time: Timestamp, queues: [String]?) async throws -> [FoundTask]
  /// Returns false, and notes nothing, if the operation does not run or another driver has it.
  func advance(_ operation: UniqueID, _ driver: UniqueID, _ step: OperationStep) async throws -> Bool
  /// In the order in which they were noted.
  func batches(of operation: UniqueID) async throws -> [OperationBatch]
  func noteSent(_ operation: UniqueID, batch number: Int64) async throws
  /// Counts what became of the commands of a batch and drops it, once all were applied or refused; with `anyway`, what is
  /// known. Returns whether it is dropped.
  func count(_ operation: UniqueID, batch number: Int64, commands: [UniqueID], anyway: Bool) async throws -> Bool
  /// Ends it: as failed if there is an error, unless it was canceled.
  func finish(_ operation: UniqueID, _ driver: UniqueID, error: String?) async throws
}
