import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// The outbox, the right to relay it, and lists.
@Suite struct RelayTests {
  @Test("events stay in the outbox until they are discarded", arguments: StoreKind.allCases)
  func eventsStayUntilTheyAreDiscarded(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let kept = TaskSpec.noop()
      let removed = TaskSpec.noop()
      try await fixture.submit(kept, removed)
      try await fixture.control(.pause, kept.id)
      try await fixture.control(.remove, removed.id)
      let pending = try await fixture.store.pendingEvents(limit: 100)
      let rows = pending.batches.map(\.row)
      let events = pending.events
      #expect(rows == rows.sorted())
      #expect(events.filter { $0.taskID == kept.id }.map(\.kind) == [.submitted, .paused])
      #expect(events.filter { $0.taskID == kept.id }.allSatisfy { $0.task?.state == .paused })
      #expect(events.filter { $0.taskID == removed.id }.allSatisfy { $0.task == nil })
      try await fixture.store.discardEvents(rows.dropLast())
      #expect(try await fixture.store.pendingEvents(limit: 100).events.map(\.kind) == [.removed])
    }
  }

  @Test("a lead that was given by a clock that was ahead keeps nobody from leading") func leadOfAnotherClock()
    async throws
  {
    try await withPostgresStore { store, pool in
      let workers = [try await store.register(.sample), try await store.register(.sample)]
      #expect(try await store.lead(workers[0], seconds: 6))
      #expect(try await !store.lead(workers[1], seconds: 6))
      _ = try await pool.query("update leader set until = until + interval '1 d'")
      #expect(try await store.lead(workers[1], seconds: 6))
    }
  }

  @Test("events of removed tasks have the specification, for the web hook", arguments: StoreKind.allCases)
  func removedTasksHaveTheirSpecification(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      var own = TaskSpec.noop(notBefore: .later)
      own.notify = "https://a.example/hook"
      let ofQueue = TaskSpec.noop(queue: "films")
      try await fixture.store.setQueueHook("films", to: "https://b.example/hook")
      for spec in [own, ofQueue] {
        try await fixture.submit(spec)
        try await fixture.control(.remove, spec.id)
      }
      let all = try await fixture.store.pendingEvents(limit: 100)
      #expect(all.batches.map(\.kind) == [.submitted, .removed, .submitted, .removed])
      #expect(all.removed[own.id]?.notify == own.notify && all.removed[ofQueue.id]?.queue == "films")
      // The row of the removal is not among those that are read.
      let first = try await fixture.store.pendingEvents(limit: 1)
      #expect(first.batches.map(\.kind) == [.submitted] && first.removed[own.id]?.notify == own.notify)
    }
  }

  @Test("events that are being published are not read again", arguments: StoreKind.allCases)
  func eventsBeingPublishedAreNotReadAgain(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      #expect(try await fixture.store.pendingRows() == nil)
      for _ in 0..<3 { try await fixture.submit(.noop()) }
      let rows = try await fixture.store.pendingEvents(limit: 100).batches.map(\.row)
      #expect(rows.count == 3)
      #expect(try await fixture.store.pendingRows() == rows[0]...rows[2])
      let behind = try await fixture.store.pendingEvents(limit: 1, excluding: [rows[0], rows[2]])
      #expect(behind.batches.map(\.row) == [rows[1]])
      #expect(behind.tasks.count == 1, "the tasks of these events and no others")
      try await fixture.store.discardEvents([rows[0]])
      #expect(try await fixture.store.pendingRows() == rows[1]...rows[2])
    }
  }

  @Test("what may be published already is not told again as it was before", arguments: StoreKind.allCases)
  func doubtedEventsAreOfThePresent(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      _ = try await fixture.store.pendingEvents(limit: 1)
      let spec = TaskSpec.noop()
      try await fixture.submit(spec)
      _ = try await fixture.store.claim(worker, limit: 1)
      fixture.store.doubtEvents()
      let document = try #require(try await fixture.store.pendingEvents(limit: 1).tasks[spec.id])
      #expect(document.state == .running && document.sequence == 2)
    }
  }

  @Test("a document that was ahead of its event is followed by no older one, however long it is", arguments: [1, 5000])
  func aheadDocuments(length: Int) async throws {
    try await withStore(.postgres) { fixture in
      let worker = try await fixture.worker()
      _ = try await fixture.store.pendingEvents(limit: 1)
      var spec = TaskSpec.noop()
      spec.labels["x"] = String(repeating: "x", count: length)
      try await fixture.submit(spec)
      // From here on nothing is doubted but the row of the submit.
      fixture.store.doubtEvents()
      _ = try await fixture.store.pendingEvents(limit: 1)
      let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
      try await fixture.settle(claim, .success)
      for _ in 1...3 {
        let pending = try await fixture.store.pendingEvents(limit: 1)
        #expect(pending.tasks[spec.id]?.state == .succeeded && pending.tasks[spec.id]?.sequence == 3)
        try await fixture.store.discardEvents(pending.wholeRows)
      }
    }
  }

  @Test("only one worker at a time leads the relay", arguments: StoreKind.allCases)
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

  @Test("scheduled and retried tasks are listed apart", arguments: StoreKind.allCases)
  func queuedTasksAreListedByWhatTheyWaitFor(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      let later = Timestamp("9000-01-01T00:00:00Z")
      let retried = TaskSpec.noop(queue: "x")
      try await fixture.submit(retried)
      let claim = try #require(try await fixture.store.claim(worker, limit: 1).first)
      try await fixture.settle(claim, .failed(.reset, retryIn: .seconds(3600)))
      let due = TaskSpec.noop(queue: "x")
      let scheduled = TaskSpec.noop(queue: "x", notBefore: later)
      let elsewhere = TaskSpec.noop(queue: "y", notBefore: later)
      for spec in [due, scheduled, elsewhere] { try await fixture.submit(spec) }
      func list(_ filter: TaskFilter) async throws -> [UniqueID] {
        try await fixture.store.tasks(filter).map(\.spec.id)
      }
      #expect(try await list(TaskFilter(state: .scheduled)) == [elsewhere.id, scheduled.id])
      #expect(try await list(TaskFilter(state: .scheduled, queue: "x")) == [scheduled.id])
      #expect(try await list(TaskFilter(state: .scheduled, limit: 1)) == [elsewhere.id])
      #expect(try await list(TaskFilter(state: .retrying)) == [retried.id])
      #expect(try await list(TaskFilter(state: .retrying, queue: "y")) == [])
      #expect(try await list(TaskFilter(state: .queued)) == [elsewhere.id, scheduled.id, due.id, retried.id])
      try await fixture.makeDue(scheduled.id)
      #expect(try await list(TaskFilter(state: .scheduled)) == [elsewhere.id])
    }
  }

  @Test("lists are filtered and begin with the newest task", arguments: StoreKind.allCases)
  func listsAreNewestFirstAndFiltered(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let a = TaskSpec.noop(queue: "x")
      let b = TaskSpec.noop(queue: "y")
      let c = TaskSpec.noop(queue: "x")
      for spec in [a, b, c] { try await fixture.submit(spec) }
      try await fixture.control(.pause, a.id)
      func list(_ filter: TaskFilter) async throws -> [UniqueID] {
        try await fixture.store.tasks(filter).map(\.spec.id)
      }
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
