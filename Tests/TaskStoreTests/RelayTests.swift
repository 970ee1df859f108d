import TaskCore
import TaskStore
import Testing

/// The outbox, the right to relay it, and lists.
@Suite struct RelayTests {
  @Test(arguments: StoreKind.allCases)
  func eventsStayUntilTheyAreDiscarded(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let kept = TaskSpec.noop()
      let removed = TaskSpec.noop()
      try await fixture.submit(kept, removed)
      try await fixture.control(.pause, kept.id)
      try await fixture.control(.remove, removed.id)
      let batches = try await fixture.store.pendingEvents(limit: 100)
      let events = batches.flatMap(\.events)
      #expect(batches.map(\.row) == batches.map(\.row).sorted())
      #expect(events.filter { $0.taskID == kept.id }.map(\.kind) == [.submitted, .paused])
      #expect(events.filter { $0.taskID == kept.id }.allSatisfy { $0.task?.state == .paused })
      #expect(events.filter { $0.taskID == removed.id }.allSatisfy { $0.task == nil })
      try await fixture.store.discardEvents(batches.dropLast().map(\.row))
      #expect(try await fixture.store.pendingEvents(limit: 100).flatMap(\.events).map(\.kind) == [.removed])
    }
  }

  @Test(arguments: StoreKind.allCases)
  func oneWorkerLeads(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let a = try await fixture.worker()
      let b = try await fixture.worker()
      #expect(try await fixture.store.lead(a, seconds: 60))
      #expect(try await fixture.store.lead(b, seconds: 60) == false)
      #expect(try await fixture.store.lead(a, seconds: 60))
      try await fixture.store.retire(a)
      #expect(try await fixture.store.lead(b, seconds: 60))
    }
  }

  @Test(arguments: StoreKind.allCases)
  func listsAreNewestFirstAndFiltered(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let a = TaskSpec.noop(queue: "x")
      let b = TaskSpec.noop(queue: "y")
      let c = TaskSpec.noop(queue: "x")
      for spec in [a, b, c] { try await fixture.submit(spec) }
      try await fixture.control(.pause, a.id)
      func list(_ filter: TaskFilter) async throws -> [UUID] { try await fixture.store.tasks(filter).map(\.spec.id) }
      #expect(try await list(TaskFilter()) == [c.id, b.id, a.id])
      #expect(try await list(TaskFilter(limit: 1)) == [c.id])
      #expect(try await list(TaskFilter(queue: "x")) == [c.id, a.id])
      #expect(try await list(TaskFilter(state: .paused)) == [a.id])
      #expect(try await list(TaskFilter(state: .paused, queue: "y")) == [])
      _ = try await fixture.store.claim(try await fixture.worker(), limit: 10)
      #expect(try await list(TaskFilter(state: .running)) == [c.id, b.id])
      #expect(try await list(TaskFilter(state: .running, queue: "y")) == [b.id])
      #expect(try await list(TaskFilter(state: .publishing)) == [])
    }
  }
}
