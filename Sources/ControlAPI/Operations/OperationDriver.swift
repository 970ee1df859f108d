import ReelhaulSystem
import TaskCore
import TaskStore

/// Works off operations. Any number of processes may do so: an operation belongs to the one that has its lease, and if that
/// process ends, another one goes on where the row says. ``OperationPlanner`` decides what to do.
package struct OperationDriver: Sendable {
  /// Is told why operations wait for PostgreSQL or Kafka, and with nil that they go on.
  package typealias OnOutage = @Sendable ((any Error)?) -> Void

  /// How long a driver may be silent before another one takes its operations, in seconds.
  private static let lease = 15
  /// How many operations it works on at once.
  private static let atOnce = 8
  /// The time between two looks while there is nothing to do.
  private static let rest = Duration.milliseconds(250)

  private let store: any OperationStore
  private let send: ControlAPI.Send
  private let loop: EventLoop
  private let onOutage: OnOutage
  private let only: UniqueID?
  private let id = UniqueID(milliseconds: Clocks.realtimeMilliseconds())

  /// `only` is the one operation that it works on, beside those for which this one waits; nil for all.
  package init(
    store: any OperationStore, send: @escaping ControlAPI.Send, loop: EventLoop, only: UniqueID? = nil,
    onOutage: @escaping OnOutage = { _ in }
  ) {
    self.only = only
    self.store = store
    self.send = send
    self.loop = loop
    self.onOutage = onOutage
  }

  /// Works until its task is canceled. Waits while PostgreSQL or Kafka cannot be reached.
  package func run() async {
    var backoff = Backoff(base: .milliseconds(250), limit: .seconds(5), seed: .random(in: 0 ... .max))
    var isOut = false
    while !Task.isCancelled {
      var turn: Turn
      do { turn = try await moveAll() } catch { turn = Turn(refusal: error) }
      // What the end has interrupted is no trouble.
      if Task.isCancelled { return }
      if isOut != (turn.refusal != nil) { onOutage(turn.refusal) }
      isOut = turn.refusal != nil
      if !isOut { backoff.reset() }
      let wait = turn.moved ? .zero : isOut ? backoff.next() : Self.rest
      if wait > .zero {
        do { try await loop.sleep(for: wait) } catch { return }
      }
    }
  }

  /// One turn: a step of every operation that it has. Returns whether anything moved. An operation that the store refuses,
  /// or whose commands Kafka does not take, keeps no other one waiting; it fails if the store says that it is its own
  /// fault, because it would be refused for ever.
  package func turn() async throws -> Bool {
    let turn = try await moveAll()
    if let refusal = turn.refusal, !turn.moved { throw refusal }
    return turn.moved
  }

  private struct Turn {
    var moved = false
    /// Why an operation waits.
    var refusal: (any Error)?
  }

  private struct Sent {
    var operation: TaskOperation
    var batch: OperationBatch
    /// Why Kafka did not take it.
    var failure: (any Error)?
  }

  private func moveAll() async throws -> Turn {
    try await withThrowingTaskGroup(of: Sent.self) { group in
      var turn = Turn()
      for operation in try await operations() {
        try await move(operation, in: &turn) {
          // Beside all others, because each may wait for Kafka for a minute.
          try await takeSteps(of: operation) { batch in group.addTask { await sent(batch, of: operation) } }
        }
      }
      for try await sent in group {
        try await move(sent.operation, in: &turn) {
          if let failure = sent.failure { throw failure }
          try await store.noteSent(sent.operation.id, batch: sent.batch.number)
          return true
        }
      }
      return turn
    }
  }

  /// Returns whether anything moved. What it begins to `send` has not moved yet.
  private func takeSteps(of operation: TaskOperation, send: (OperationBatch) -> Void) async throws -> Bool {
    var moved = false
    for step in OperationPlanner.steps(operation, try await store.batches(of: operation.id)) {
      try Task.checkCancellation()
      if moved, case .giveUp = step { break }
      if try await take(step, of: operation, send: send) { moved = true }
    }
    return moved
  }

  private func sent(_ batch: OperationBatch, of operation: TaskOperation) async -> Sent {
    do {
      try await send(batch.tasks.map { .control(operation.command(for: $0)) })
      return Sent(operation: operation, batch: batch)
    } catch {
      return Sent(operation: operation, batch: batch, failure: error)
    }
  }

  /// Takes a step of one operation, which returns whether anything moved.
  private func move(
    _ operation: TaskOperation, in turn: inout Turn, _ step: () async throws -> Bool
  ) async throws {
    do {
      if try await step() { turn.moved = true }
    } catch let error as StoreError where error.blamesItems(of: 1) {
      try await store.finish(operation.id, id, error: "\(error)")
      turn.moved = true
    } catch  where (error as? StoreError)?.blamesItems(of: 2) ?? !(error is CancellationError) {
      turn.refusal = turn.refusal ?? error
    }
  }

  /// Those that it has. With the only one, that for which it waits, and so on: there may be no other driver.
  private func operations() async throws -> [TaskOperation] {
    var (all, next): ([TaskOperation], UniqueID?) = ([], only)
    repeat {
      let taken = try await store.takeOperations(id, seconds: Self.lease, limit: Self.atOnce, only: next)
      all += taken
      next = only == nil ? nil : taken.first?.waitsFor?.id
    } while next != nil
    return all
  }

  private func take(
    _ step: OperationPlanner.Step, of operation: TaskOperation, send: (OperationBatch) -> Void
  ) async throws -> Bool {
    switch step {
    case .send(let batch):
      send(batch)
      return false
    case .walk(let limit):
      return try await store.advance(operation.id, id, try await find(operation, limit: limit))
    case .count(let batches): return try await count(batches, of: operation, anyway: false)
    case .giveUp(let batches, let error):
      _ = try await count(batches, of: operation, anyway: true)
      try await store.finish(operation.id, id, error: error)
    case .drop(let batches): _ = try await count(batches, of: operation, anyway: true)
    case .finish: try await store.finish(operation.id, id, error: nil)
    }
    return true
  }

  /// Returns whether any batch was counted.
  private func count(
    _ batches: [OperationBatch], of operation: TaskOperation, anyway: Bool
  ) async throws -> Bool {
    var counted = false
    for batch in batches {
      let commands = batch.tasks.map { operation.command(for: $0).id }
      if try await store.count(operation.id, batch: batch.number, commands: commands, anyway: anyway) { counted = true }
    }
    return counted
  }

  /// The next tasks of an operation, and how far it has looked then.
  private func find(_ operation: TaskOperation, limit: Int) async throws -> OperationStep {
    switch operation.selection {
    case .filter:
      let walk = try await store.walk(
        operation.reach, operation.order, after: operation.progress.position, limit: limit)
      var step = OperationPlanner.note(OperationPlanner.matching(walk.tasks, operation), for: operation.action)
      step.position = walk.next
      step.isAtEnd = walk.next == nil
      return step
    case .ids(let ids):
      let next = Array(ids.dropFirst(operation.progress.lookedAt).prefix(limit))
      let found = try await store.find(next, before: operation.createdAt, queues: operation.queues)
      var step = OperationPlanner.note(found, for: operation.action)
      step.matched = next.count
      let unknown = next.count - found.count
      if unknown > 0 { step.refusals["unknown_task"] = Int64(unknown) }
      step.lookedAt = next.count
      step.isAtEnd = operation.progress.lookedAt + next.count >= ids.count
      return step
    }
  }
}

/// What an operation would do.
package struct OperationPreview: Sendable {
  /// Tasks that would get a command; with `isAtLeast`, it may be more.
  package var count = 0
  package var isAtLeast = false
  /// Tasks that match, but whose state does not allow the action.
  package var impossible = 0
  /// The newest of them.
  package var examples: [UniqueID] = []
  /// By the store's clock: tasks that were created at this time or later do not count.
  package let at: Timestamp

  private static let mostExamples = 10
  /// How many tasks are looked for at most, and how long.
  private static let most = 100_000
  private static let time = Duration.seconds(5)

  package static func of(_ operation: TaskOperation, in store: any OperationStore) async throws -> OperationPreview {
    var operation = operation
    operation.createdAt = try await store.operationTime()
    var preview = OperationPreview(at: operation.createdAt)
    switch operation.selection {
    case .ids(let ids):
      preview.add(try await store.find(ids, before: operation.createdAt, queues: operation.queues), operation)
    case .filter:
      let deadline = BootInstant.now + time
      var position: TaskCursor?
      repeat {
        // The newest ones are its examples.
        let walk = try await store.walk(operation.reach, .newestFirst, after: position, limit: 2000)
        preview.add(walk.tasks, operation)
        position = walk.next
        preview.isAtLeast = position != nil && (preview.count >= most || deadline < .now)
      } while position != nil && !preview.isAtLeast
    }
    return preview
  }

  private mutating func add(_ found: [FoundTask], _ operation: TaskOperation) {
    let found = OperationPlanner.matching(found, operation)
    let possible = found.filter { OperationPlanner.allows(operation.action, $0) }
    count += possible.count
    impossible += found.count - possible.count
    examples += possible.prefix(Self.mostExamples - examples.count).map(\.id)
  }
}

extension TaskOperation {
  /// The command for a task. Its id is a UUID of version 8 that follows from the operation and the task, so that a command
  /// that is sent again is the same one.
  package func command(for task: UniqueID) -> Command.Control {
    Command.Control(
      id: UniqueID(derivedFrom: "reelhaul operation \(id) \(task)"), taskID: task, action: action, actor: actor)
  }

  /// Its filter, less what it may not or cannot touch: no task that is as young as itself, for one.
  var reach: OperationFilter {
    guard case .filter(var filter) = selection else { return OperationFilter() }
    filter.states = OperationPlanner.states(filter, for: action)
    filter.queues = reachableQueues
    filter.before = min(filter.before ?? createdAt, createdAt)
    return filter
  }
}
