import TaskAdvice
import TaskCore
import Testing

@testable import reelhaul

@Suite struct RefusalAdviceTests {
  private static let actions = ControlAction.names.compactMap { ControlAction(name: $0, priority: 1) }

  /// The command that the advice suggests must not be refused.
  @Test("the command that the advice names is allowed in this state", arguments: TaskState.allCases)
  func theAdvisedCommandIsAllowed(_ state: TaskState) throws {
    let task = UniqueID(high: 1, low: 2)
    for action in Self.actions {
      var machine = TaskMachine(state: state)
      guard (try? machine.handle(.control(action))) == nil else { continue }
      let advice = RefusalAdvice.of(action, task, in: state)
      #expect(!advice.isEmpty)
      for match in advice.matches(of: #/'reelhaul (\w+) /#) where match.1 != "show" {
        let next = try #require(Self.actions.first { $0.name == match.1 }, "\(advice)")
        var machine = TaskMachine(state: state)
        #expect(throws: Never.self, "\(action.name) of a \(state.rawValue) task: \(advice)") {
          try machine.handle(.control(next))
        }
        #expect(advice.contains("\(task)"))
      }
    }
  }

  @Test(
    "a failed task must be retried before it can be controlled",
    arguments: [ControlAction.pause, .resume, .prioritize(1)])
  func failedTasksAreRetriedFirst(_ action: ControlAction) {
    let task = UniqueID(high: 1, low: 2)
    #expect(RefusalAdvice.of(action, task, in: .failed).contains("'reelhaul retry \(task)' queues it again"))
  }

  @Test("a running task must be canceled before it is removed")
  func aRunningTaskIsCanceledBeforeItIsRemoved() {
    let task = UniqueID(high: 1, low: 2)
    #expect(RefusalAdvice.of(.remove, task, in: .running) == "Cancel it first: 'reelhaul cancel --wait \(task)'.")
  }
}
