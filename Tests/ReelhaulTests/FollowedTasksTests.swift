import ReelhaulSystem
import TaskCore
import Testing

@testable import reelhaul

@Suite struct FollowedTasksTests {
  private static func task(_ number: UInt64, _ state: TaskState = .queued) -> TaskDocument {
    TaskDocument(
      spec: TaskSpec(
        id: UniqueID(high: 1, low: number), kind: .noop, source: "noop:", destination: nil, queue: "default"),
      state: state, createdAt: Timestamp(microseconds: 0))
  }

  private static func byID(_ tasks: [TaskDocument]) -> [UniqueID: TaskDocument] {
    Dictionary(uniqueKeysWithValues: tasks.map { ($0.spec.id, $0) })
  }

  @Test("what was shown of a task is known while it is listed, and for a minute after")
  func forgetsWhatIsNotListed() {
    var shown = LastShown<TaskState>()
    var known: [TaskState?] = []
    let start = BootInstant.now
    func look(_ tasks: [TaskDocument], after seconds: Int) {
      shown.update(tasks, now: start + .seconds(seconds)) { last, task, _ in
        known.append(last)
        return task.state
      }
    }
    look([Self.task(1), Self.task(2)], after: 1)
    look([Self.task(1, .running)], after: 50)
    look([Self.task(1, .running), Self.task(2)], after: 59)
    look([Self.task(1)], after: 125)
    look([Self.task(2), Self.task(1)], after: 126)
    #expect(known == [nil, nil, .queued, .running, .queued, .running, nil, .queued])
  }

  // MARK: By name

  @Test("a removed task counts as it was seen last")
  func aTaskThatIsRemovedCountsAsItWasSeenLast() {
    let (a, b) = (Self.task(1), Self.task(2))
    var tasks = NamedTasks([a.spec.id, b.spec.id])
    #expect(tasks.update([:]) == [])
    #expect(tasks.unseen == [a.spec.id, b.spec.id] && !tasks.areAll(\.state.isFinal))

    #expect(tasks.update(Self.byID([Self.task(1, .succeeded), Self.task(2, .running)])) == [])
    #expect(!tasks.areAll(\.state.isFinal))
    #expect(tasks.update(Self.byID([Self.task(2, .running)])) == [Self.task(1, .succeeded)])
    #expect(tasks.unseen == [] && tasks.existing == [Self.task(2, .running)])
    #expect(tasks.update(Self.byID([Self.task(2, .succeeded)])) == [], "told once")
    #expect(tasks.areAll(\.state.isFinal))
    #expect(tasks.documents == [Self.task(1, .succeeded), Self.task(2, .succeeded)])
  }

  @Test("a task that is known may be removed before the first look")
  func aTaskThatWasSeenBeforeMayBeGoneAtOnce() {
    var tasks = NamedTasks([Self.task(1).spec.id], known: [Self.task(1)])
    #expect(tasks.update([:]) == [Self.task(1)])
    #expect(tasks.areAll { $0.state == .paused })
    #expect(tasks.documents == [Self.task(1)])
  }

  @Test("nobody is advised to show a task that is gone")
  func aTaskThatIsGoneIsNotToBeShown() throws {
    let (a, b) = (Self.task(1, .canceled), Self.task(2, .canceled))
    var tasks = NamedTasks([a.spec.id, b.spec.id])
    _ = tasks.update(Self.byID([a, b]))
    _ = tasks.update(Self.byID([b]))
    let advice = try #require(tasks.advice { $0.state != .succeeded })
    #expect(advice.hasPrefix("'reelhaul show \(b.spec.id)'"), "\(advice)")
    _ = tasks.update([:])
    #expect(tasks.advice { $0.state != .succeeded } == nil)
  }

  // MARK: All that are unfinished

  @Test("a followed task keeps its row")
  func aTaskKeepsItsRow() async throws {
    var tasks = FollowedTasks(limit: 4)
    try await tasks.update(listed: [Self.task(1), Self.task(2), Self.task(3)]) { _ in [:] }
    let now = [Self.task(3, .running), Self.task(4, .running), Self.task(1)]
    try await tasks.update(listed: now) { ids in
      #expect(ids == [Self.task(2).spec.id], "what was listed is not looked up")
      return Self.byID([Self.task(2, .succeeded)])
    }
    #expect(
      tasks.documents == [Self.task(1), Self.task(2, .succeeded), Self.task(3, .running), Self.task(4, .running)])
  }

  @Test("a removed task is no longer followed")
  func aRemovedTaskIsNotFollowed() async throws {
    var tasks = FollowedTasks(limit: 4)
    try await tasks.update(listed: [Self.task(1), Self.task(2)]) { _ in [:] }
    try await tasks.update(listed: [Self.task(2)]) { _ in [:] }
    #expect(tasks.documents == [Self.task(2)])
  }

  @Test("ended tasks give way to others first, and waiting tasks next")
  func endedAndWaitingTasksGiveWay() async throws {
    var tasks = FollowedTasks(limit: 3)
    try await tasks.update(listed: [Self.task(1, .running), Self.task(2), Self.task(3)]) { _ in [:] }
    try await tasks.update(listed: [Self.task(2), Self.task(3), Self.task(4)]) { _ in
      Self.byID([Self.task(1, .succeeded)])
    }
    #expect(tasks.documents == [Self.task(2), Self.task(3), Self.task(4)])
    try await tasks.update(listed: [Self.task(5, .running), Self.task(2), Self.task(3), Self.task(4), Self.task(6)]) {
      _ in [:]
    }
    #expect(tasks.documents == [Self.task(2), Self.task(3), Self.task(5, .running)])
  }

  @Test("ended tasks can be dropped and are not looked up again")
  func endedTasksAreDropped() async throws {
    var tasks = FollowedTasks(limit: 3)
    try await tasks.update(listed: [Self.task(1), Self.task(2)]) { _ in [:] }
    try await tasks.update(listed: [Self.task(2)]) { _ in Self.byID([Self.task(1, .failed)]) }
    tasks.dropEnded()
    try await tasks.update(listed: [Self.task(2)]) { _ in
      Issue.record("nothing is looked up")
      return [:]
    }
    #expect(tasks.documents == [Self.task(2)])
  }
}
