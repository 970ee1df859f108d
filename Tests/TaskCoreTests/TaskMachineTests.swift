import ReelhaulSystem
import Testing

@testable import TaskCore

private func moved(
  _ state: TaskState, intent: Intent? = nil, waits: Bool = false, by event: TaskMachine.Event
) throws(IllegalTransition) -> (TaskMachine, [TaskMachine.Action]) {
  var task = TaskMachine(state: state, intent: intent, waitsForOthers: waits, attempt: 3, epoch: 5, sequence: 7)
  let actions = try task.handle(event)
  return (task, actions)
}

struct TaskMachineTests {
  @Test("a task runs from blocked to removed with its actions in order")
  func aTaskRunsThrough() throws {
    var (task, actions) = TaskMachine.submit(paused: false, waitsForOthers: true)
    #expect(task.state == .blocked && actions == [.publish(.submitted)] && task.sequence == 1)
    for (event, expected) in [
      (.dependenciesSatisfied, [.enqueue(.back), .publish(.unblocked)]),
      (.claimed, [.dequeue, .beginRun, .publish(.started)]),
      (.publishing, [.publish(.publishing)]),
      (.succeeded, [.endRun, .publish(.succeeded), .satisfyDependents]),
      (.control(.remove), [.publish(.removed), .delete]),
    ] as [(TaskMachine.Event, [TaskMachine.Action])] {
      actions = try task.handle(event)
      #expect(actions == expected)
    }
    #expect(task.state == .succeeded && task.isRemoved)
    #expect(task.attempt == 1 && task.epoch == 1 && task.sequence == 6)
  }

  @Test("a submitted task is queued, paused or blocked")
  func submittedTasksGoWhereTheyBelong() {
    #expect(TaskMachine.submit(paused: false, waitsForOthers: false).0.state == .queued)
    #expect(TaskMachine.submit(paused: true, waitsForOthers: false).0.state == .paused)
    #expect(TaskMachine.submit(paused: true, waitsForOthers: true).0.state == .paused)
  }

  @Test(
    "a pending intent decides the state after a run without success, and not after success",
    arguments: [TaskState.running, .publishing])
  func anIntentDecidesWhereARunThatEndsWithoutSuccessGoes(state: TaskState) throws {
    for event in [
      TaskMachine.Event.failed(retryIn: nil), .failed(retryIn: .seconds(1)), .progressed(retryIn: .seconds(1)),
      .released(delay: .seconds(9)), .leaseExpired,
    ] {
      let (paused, pauseActions) = try moved(state, intent: .pause, by: event)
      #expect(paused.state == .paused && paused.intent == nil && pauseActions == [.endRun, .publish(.paused)])
      let (canceled, cancelActions) = try moved(state, intent: .cancel, by: event)
      #expect(canceled.state == .canceled && canceled.intent == nil && cancelActions == [.endRun, .publish(.canceled)])
    }
    for intent in Intent.allCases {
      #expect(try moved(state, intent: intent, by: .succeeded).0.state == .succeeded)
    }
  }

  @Test("only failures count as attempts")
  func onlyFailuresCountAsAttempts() throws {
    #expect(try moved(.running, by: .failed(retryIn: .seconds(2))).0.attempt == 3)
    #expect(try moved(.running, by: .progressed(retryIn: .seconds(2))).0.attempt == 0)
    #expect(try moved(.running, by: .released(delay: .zero)).0.attempt == 2)
    #expect(try moved(.running, by: .leaseExpired).0.attempt == 2)
    #expect(try moved(.failed, by: .control(.retry)).0.attempt == 0)
  }

  @Test("a task that is handed back goes to the front, and a delay is kept")
  func aHandBackGoesToTheFrontAndADelayIsKept() throws {
    #expect(try moved(.running, by: .released(delay: .zero)).1 == [.endRun, .enqueue(.front), .publish(.released)])
    #expect(
      try moved(.running, by: .released(delay: .seconds(3))).1
        == [.endRun, .enqueue(.after(.seconds(3))), .publish(.released)])
    #expect(
      try moved(.running, by: .failed(retryIn: .seconds(4))).1
        == [.endRun, .enqueue(.after(.seconds(4))), .publish(.retrying)])
    #expect(
      try moved(.running, by: .progressed(retryIn: .seconds(4))).1
        == [.endRun, .enqueue(.after(.seconds(4))), .publish(.retrying)])
  }

  @Test("resume withdraws a pause that has not happened yet")
  func resumeWithdrawsAPauseThatHasNotHappened() throws {
    let (task, actions) = try moved(.running, intent: .pause, by: .control(.resume))
    #expect(task.state == .running && task.intent == nil && actions == [.withdrawIntent])
  }

  @Test("cancel replaces a pending pause, and nothing replaces a pending cancel")
  func cancelOverridesPauseButNotTheOtherWayRound() throws {
    #expect(try moved(.running, intent: .pause, by: .control(.cancel)).1 == [.tellWorker(.cancel)])
    #expect(throws: IllegalTransition.self) { try moved(.running, intent: .cancel, by: .control(.pause)) }
    #expect(throws: IllegalTransition.self) { try moved(.running, intent: .cancel, by: .control(.resume)) }
  }

  @Test("a command that asks for the present state is refused")
  func commandsForThePresentStateAreRefused() {
    for (state, action) in [
      (TaskState.paused, ControlAction.pause), (.canceled, .cancel), (.queued, .resume), (.running, .resume),
      (.blocked, .resume), (.queued, .retry),
    ] {
      #expect(throws: IllegalTransition.self) { try moved(state, by: .control(action)) }
    }
  }

  @Test("a repeated intent is sent to the worker again")
  func aRepeatedIntentIsToldAgain() throws {
    for (intent, action) in [(Intent.pause, ControlAction.pause), (.cancel, .cancel)] {
      let (task, actions) = try moved(.running, intent: intent, by: .control(action))
      #expect(task.intent == intent && actions == [.tellWorker(intent)])
    }
  }

  @Test("a resumed or retried task whose predecessors have not succeeded is blocked")
  func aTaskThatWaitsForOthersIsBlockedAgain() throws {
    #expect(try moved(.paused, waits: true, by: .control(.resume)).0.state == .blocked)
    #expect(try moved(.canceled, waits: true, by: .control(.retry)).0.state == .blocked)
    var (task, _) = try moved(.paused, waits: true, by: .dependenciesSatisfied)
    let actions = try task.handle(.control(.resume))
    #expect(actions == [.enqueue(.back), .publish(.resumed)])
  }

  @Test("an illegal command is refused with its reason")
  func illegalMovesSayWhy() {
    for (state, intent, action, reason) in [
      (.succeeded, nil, .cancel, "cancel is not possible while the task is succeeded"),
      (.running, .pause, .remove, "remove is not possible while the task is running"),
      (.publishing, .cancel, .pause, "pause is not possible while the task is being canceled"),
    ] as [(TaskState, Intent?, ControlAction, String)] {
      let error = #expect(throws: IllegalTransition.self) { try moved(state, intent: intent, by: .control(action)) }
      #expect(error?.description == reason)
    }
  }

  @Test(
    "after random events, place, ownership and intent agree with the state, and refused events change nothing",
    arguments: 0..<100 as Range<UInt64>)
  func keepsItsInvariants(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var (task, actions) = TaskMachine.submit(
      paused: .random(using: &generator), waitsForOthers: .random(using: &generator))
    var isEnqueued = false
    var isOwned = false
    var published = 0
    for _ in 0..<200 {
      for action in actions {
        switch action {
        case .enqueue:
          #expect(!isEnqueued && !isOwned, "enqueued twice, or while owned")
          isEnqueued = true
        case .dequeue:
          #expect(isEnqueued)
          isEnqueued = false
        case .beginRun:
          #expect(!isOwned)
          isOwned = true
        case .endRun:
          #expect(isOwned)
          isOwned = false
        case .publish: published += 1
        case .tellWorker, .withdrawIntent, .setPriority, .satisfyDependents, .delete: break
        }
      }
      #expect(isOwned == (task.state == .running || task.state == .publishing))
      #expect(isEnqueued == (task.state == .queued && !task.isRemoved))
      #expect(task.intent == nil || isOwned)
      #expect(task.sequence == published)
      #expect(task.attempt >= 0 && task.attempt <= task.epoch)
      actions = []
      guard let event = TaskMachine.sampleEvents.randomElement(using: &generator) else { return }
      if event == .dependenciesSatisfied, !task.waitsForOthers { continue }
      let before = task
      do throws(IllegalTransition) {
        actions = try task.handle(event)
        #expect(!before.isRemoved)
        #expect(task.epoch == before.epoch + (event == .claimed ? 1 : 0))
      } catch {
        #expect(task == before, "a refused event changed the task")
      }
    }
  }

  @Test("every state can be reached and left")
  func everyStateCanBeReachedAndLeft() {
    for state in TaskState.allCases {
      #expect(TaskMachine.transitions.contains { $0.to == state })
      #expect(TaskMachine.transitions.contains { $0.from == state })
    }
  }

  @Test("control actions are read by their names")
  func actionsAreReadByTheirNames() {
    #expect(ControlAction.names.compactMap { ControlAction(name: $0, priority: 3)?.name } == ControlAction.names)
    #expect(ControlAction(name: "prioritize") == nil)
    #expect(ControlAction(name: "Pause") == nil)
  }
}
