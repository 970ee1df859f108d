import ReelhaulClient
import TaskCore
import TaskStore
import Testing

@testable import ControlAPI

@Suite struct OperationPlannerTests {
  private static let tasks = (0..<3).map { UniqueID(high: 1, low: UInt64($0)) }

  private static func operation(
    _ state: TaskOperation.State = .running, isWalked: Bool = false, idle: Duration = .zero
  ) -> TaskOperation {
    var operation = TaskOperation(
      id: UniqueID(high: 2, low: 2), action: .cancel, selection: .filter(OperationFilter()),
      createdAt: Timestamp(microseconds: 0))
    operation.state = state
    operation.progress.isWalked = isWalked
    operation.progress.idle = idle
    return operation
  }

  private static func batch(_ number: Int64, sent: Bool) -> OperationBatch {
    OperationBatch(number: number, tasks: tasks, isSent: sent)
  }

  @Test("what was noted is sent before anything else is looked for") func unsent() {
    let batches = [Self.batch(1, sent: true), Self.batch(2, sent: false), Self.batch(3, sent: false)]
    #expect(OperationPlanner.steps(Self.operation(), batches) == [.send(batches[1])])
    #expect(OperationPlanner.steps(Self.operation(isWalked: true), batches) == [.send(batches[1])])
  }

  @Test("it looks for more while few commands wait to be applied, and not beyond the window") func window() {
    #expect(OperationPlanner.steps(Self.operation(), []) == [.walk(OperationPlanner.batch)])
    let one = [Self.batch(1, sent: true)]
    #expect(
      OperationPlanner.steps(Self.operation(), one) == [.count(one), .walk(OperationPlanner.batch)])
    let many = (0..<Int64(OperationPlanner.window)).map { Self.batch($0, sent: true) }
    #expect(OperationPlanner.steps(Self.operation(), many) == [.count(many)])
    var stopping = many
    for index in stopping.indices { stopping[index].isApplied = true }
    #expect(
      OperationPlanner.steps(Self.operation(), stopping) == [.count(stopping), .walk(OperationPlanner.batch)])
  }

  @Test("it looks for nothing while it waits for an older operation, which it can be canceled in") func waiting() {
    var operation = Self.operation()
    operation.waitsFor = .init(id: UniqueID(high: 2, low: 1), action: .pause)
    #expect(OperationPlanner.steps(operation, []) == [])
    let one = [Self.batch(1, sent: true)]
    #expect(OperationPlanner.steps(operation, one) == [.count(one)])
    operation.state = .canceled
    #expect(OperationPlanner.steps(operation, []) == [.finish])
  }

  @Test("it ends once everything was looked at and counted") func end() {
    #expect(OperationPlanner.steps(Self.operation(isWalked: true), []) == [.finish])
    let one = [Self.batch(1, sent: true)]
    #expect(OperationPlanner.steps(Self.operation(isWalked: true), one) == [.count(one)])
  }

  @Test("a canceled operation sends nothing more, and ends once what was sent is counted") func canceled() {
    let mixed = [Self.batch(1, sent: true), Self.batch(2, sent: false)]
    #expect(OperationPlanner.steps(Self.operation(.canceled), mixed) == [.drop(mixed.filter { !$0.isSent })])
    #expect(OperationPlanner.steps(Self.operation(.canceled), [mixed[0]]) == [.count([mixed[0]])])
    #expect(OperationPlanner.steps(Self.operation(.canceled), []) == [.finish])
  }

  @Test("commands that nobody applies for an hour end the operation") func patience() {
    let one = [Self.batch(1, sent: true)]
    let steps = OperationPlanner.steps(Self.operation(idle: OperationPlanner.patience), one)
    #expect(steps.first == .count(one) && steps.count == 2)
    guard case .giveUp(one, let error) = steps.last else {
      Issue.record("it goes on")
      return
    }
    #expect(error.contains("3 commands"))
  }

  @Test("tasks whose state does not allow the action get no command, and are counted as refused")
  func illegal() {
    for action in [ControlAction.pause, .resume, .cancel, .retry, .remove(files: true), .prioritize(5)] {
      let found = TaskState.allCases.enumerated().map { FoundTask(id: UniqueID(high: 3, low: UInt64($0)), state: $1) }
      let step = OperationPlanner.note(found, for: action)
      let allowed = found.filter { task in
        var machine = TaskMachine(state: task.state)
        return (try? machine.handle(.control(action))) != nil
      }
      #expect(step.tasks == allowed.map(\.id) && step.matched == found.count && !allowed.isEmpty)
      #expect(step.refusals == ["illegal_transition": Int64(found.count - allowed.count)])
      // Without states in the filter, only those are looked for that allow it, or may be pausing.
      let states = Set(OperationPlanner.states(OperationFilter(), for: action).map(\.rawValue))
      let pausing: Set = action == .resume ? ["running", "publishing"] : []
      #expect(states == pausing.union(allowed.map(\.state.rawValue)), "\(action)")
    }
  }

  @Test("resume withdraws pauses that runs still follow, and passes over other running tasks unless they are asked for")
  func pausing() {
    let found = [TaskState.paused, .running, .running].enumerated().map {
      FoundTask(id: UniqueID(high: 3, low: UInt64($0)), state: $1, isPausing: $0 == 1)
    }
    for states in [[], [TaskStatus.running]] {
      var filter = OperationFilter()
      filter.states = states
      let operation = TaskOperation(
        id: .make(), action: .resume, selection: .filter(filter),
        createdAt: Timestamp(microseconds: 0))
      let matching = OperationPlanner.matching(found, operation)
      #expect(matching == (states.isEmpty ? Array(found.prefix(2)) : found))
      let step = OperationPlanner.note(matching, for: .resume)
      #expect(step.tasks == found.prefix(2).map(\.id))
      #expect(step.refusals == (states.isEmpty ? [:] : ["illegal_transition": 1]))
    }
  }

  @Test("the command of an operation for a task is always the same one, and another for any other") func ids() {
    let operation = Self.operation()
    let other = TaskOperation(
      id: .make(), action: .cancel, selection: .ids([]), createdAt: Timestamp(microseconds: 0))
    let ids = [operation, other].flatMap { operation in Self.tasks.map { operation.command(for: $0).id } }
    #expect(Set(ids).count == 6)
    #expect(ids == [operation, other].flatMap { operation in Self.tasks.map { operation.command(for: $0).id } })
    #expect(ids.allSatisfy { $0.high >> 12 & 0xF == 8 })
  }
}
