import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing

/// Lists of tasks with filters, in pages.
@Suite struct ListTests {
  @Test("what documents do not show of a URL is not found by its text", arguments: StoreKind.allCases)
  func hiddenText(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      var task = TaskSpec.noop(destination: "s3://films/a@b.mp4")
      task.source = "sftp://bob:pass@word@nas.example/in/at@home.mov?token=7#part"
      try await fixture.submit(task)
      for text in ["sftp://nas.example/in/AT@home.mov", "s3://films/a@b"] {
        #expect(try await fixture.store.page(TaskFilter(text: text)).tasks.map(\.spec.id) == [task.id], "\(text)")
      }
      for text in ["bob", "pass", "word@", "token", "part"] {
        #expect(try await fixture.store.page(TaskFilter(text: text)).tasks == [], "\(text)")
      }
    }
  }

  @Test("each filter selects what it names, and all of them together", arguments: StoreKind.allCases)
  func filters(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let worker = try await fixture.worker()
      var first = TaskSpec.noop(queue: "a", host: "One.example.", destination: "storage://default/Films/Über.mp4")
      first.labels = ["customer": "7", "empty": ""]
      var second = TaskSpec.noop(queue: "b", host: "two.example")
      second.labels = ["customer": "8"]
      var third = TaskSpec.noop(queue: "b", host: "two.example")
      third.kind = .download
      third.destination = "storage://default/c.mp4"
      third.source += "?signature=hidden"
      var upload = TaskSpec.noop(queue: "c", destination: "s3://Bucket/key")
      upload.source = "storage://default/a"
      upload.paused = true
      try await fixture.submit(first, second, third, upload)
      let claims = try await fixture.store.claim(worker, limit: 3)
      let (done, failed) = (claims[0].spec.id, claims[1].spec.id)
      try await fixture.settle(claims[0], .success)
      try await fixture.settle(claims[1], .failed(.reset, retryIn: nil))
      let running = claims[2].spec.id
      try await fixture.store.tidy()

      func ids(_ filter: TaskFilter) async throws -> Set<UniqueID> {
        let page = try await fixture.store.page(filter)
        #expect(page.next == nil && page.searchedTo == nil)
        return Set(page.tasks.map(\.spec.id))
      }
      let all: Set = [first.id, second.id, third.id, upload.id]
      #expect(try await ids(TaskFilter()) == all)
      #expect(try await ids(TaskFilter(states: [.succeeded])) == [done])
      #expect(try await ids(TaskFilter(states: [.succeeded, .failed])) == [done, failed])
      #expect(try await ids(TaskFilter(states: [.failed, .paused])) == [failed, upload.id])
      #expect(try await ids(TaskFilter(states: [.failed, .running])) == [failed, running])
      #expect(try await ids(TaskFilter(states: [.queued, .publishing, .blocked])) == [])
      #expect(try await ids(TaskFilter(states: [.running, .queued], queues: ["nowhere"])) == [])
      #expect(try await ids(TaskFilter(queues: ["a", "c"])) == [first.id, upload.id])
      #expect(try await ids(TaskFilter(queues: ["b"], kinds: [.download])) == [third.id])
      #expect(try await ids(TaskFilter(kinds: [.noop])) == all.subtracting([third.id]))
      #expect(try await ids(TaskFilter(hosts: ["one.example"])) == [first.id])
      #expect(try await ids(TaskFilter(hosts: ["two.example", "bucket.s3"])) == [second.id, third.id, upload.id])
      #expect(try await ids(TaskFilter(states: [.paused], hosts: ["bucket.s3"])) == [upload.id])
      let code = TaskFailure.reset.code.rawValue
      #expect(try await ids(TaskFilter(codes: [code, "other"])) == [failed])
      #expect(try await ids(TaskFilter(states: [.failed], codes: ["other"])) == [])
      #expect(try await ids(TaskFilter(labels: ["customer": nil])) == [first.id, second.id])
      #expect(try await ids(TaskFilter(labels: ["customer": "7", "empty": ""])) == [first.id])
      #expect(try await ids(TaskFilter(labels: ["customer": "7", "other": nil])) == [])
      #expect(try await ids(TaskFilter(text: "FILMS/Über")) == [first.id])
      #expect(try await ids(TaskFilter(text: "TWO.EXAMPLE/")) == [second.id, third.id])
      #expect(try await ids(TaskFilter(text: second.id.description.suffix(12).uppercased())) == [second.id])
      #expect(try await ids(TaskFilter(text: "hidden")) == [], "queries may be signed")
      #expect(try await ids(TaskFilter(text: "a\nstorage")) == [])
      #expect(try await ids(TaskFilter(text: "100%_")) == [])
      let time = try #require(try await fixture.store.task(first.id)).createdAt
      let later = Timestamp(microseconds: time.microseconds + 1)
      #expect(try await ids(TaskFilter(createdAfter: time, createdBefore: .later)) == all)
      #expect(try await ids(TaskFilter(createdAfter: later)) == [])
      #expect(try await ids(TaskFilter(createdBefore: time)) == [])
      #expect(try await ids(TaskFilter(createdBefore: later)) == all)
    }
  }

  @Test("the host of a task is found after its lane is gone") func hosts() async throws {
    try await withPostgresStore { store, pool in
      for (source, destination) in [
        ("https://A.example.:8443/x?y=@b", "storage://default/a"), ("storage://default/a", "s3://Films/b"),
        ("s3://Films/b", "storage://a/b"), ("storage://a/b", "tus+https://up.example/files"),
        ("http://[2001:DB8::1]:80/a", "https://other.example/"), ("storage://a/b", "storage://c/d"),
      ] {
        let spec = TaskSpec(id: .random(), kind: .copy, source: source, destination: destination)
        let found = try await pool.query(
          "select spec_host(json_build_object('source', $1::text, 'destination', $2::text))", .text(source),
          .text(destination)
        ).value { try $0.text() }
        #expect(found == LaneKey(spec).host, "\(source)")
      }
      _ = store
    }
  }

  @Test("pages neither repeat nor skip a task while others come, move and go", arguments: StoreKind.allCases)
  func pages(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let specs = (0..<25).map { _ in TaskSpec.noop() }
      for batch in [specs[0..<10], specs[10..<11], specs[11..<25]] {
        _ = try await fixture.store.apply(batch.map(Command.submit))
      }
      for order in TaskOrder.allCases {
        var filter = TaskFilter(order: order, limit: 4)
        var seen: [TaskDocument] = []
        repeat {
          let page = try await fixture.store.page(filter)
          #expect(page.tasks.count == min(4, 25 - seen.count) && page.searchedTo == nil)
          seen += page.tasks
          filter.cursor = page.next.flatMap { TaskCursor($0.description) }
          #expect((page.next == nil) == (seen.count == 25))
          if order == .newestFirst, seen.count == 8 {
            try await fixture.submit(.noop(priority: 3))
            try await fixture.control(.pause, seen[2].spec.id)
            try await fixture.control(.cancel, specs[3].id)
            try await fixture.control(.prioritize(9), specs[4].id)
          }
          if order == .oldestFirst { filter.createdBefore = seen.first.map { _ in .later } }
          if order == .oldestFirst, seen.count == 24 { break }
        } while filter.cursor != nil
        let ids = seen.map(\.spec.id)
        #expect(Set(ids).count == ids.count)
        #expect(Set(ids).isSubset(of: specs.map(\.id)))
        let places = seen.map { TaskCursor(createdAt: $0.createdAt, id: $0.spec.id) }
        #expect(places == places.sorted { order == .oldestFirst ? $0 < $1 : $1 < $0 })
      }
    }
  }

  @Test("a cursor names a time that can be")
  func cursors() {
    let id = UniqueID.random()
    for time in [Int64.min, .min + 1, -62_135_596_800_000_001, 253_402_300_800_000_000, .max] {
      #expect(TaskCursor("\(time)_\(id)") == nil)
    }
    let cursor = TaskCursor(createdAt: Timestamp(microseconds: -1), id: id)
    #expect(TaskCursor(cursor.description) == cursor)
  }

  @Test("a page that looks at as many tasks as it may says how far it came, and the next one goes on there")
  func budget() async throws {
    try await withPostgresStore { store, pool in
      let specs = (0..<30).map { TaskSpec.noop(queue: $0 % 10 == 0 ? "rare" : "common") }
      for spec in specs { _ = try await store.apply([.submit(spec)]) }
      let worker = try await store.register(.sample)
      let claims = try await store.claim(worker, limit: 30)
      _ = try await store.settle(claims.map { Settlement(taskID: $0.spec.id, epoch: $0.epoch, outcome: .success) })
      var filter = TaskFilter(queue: "rare", limit: 2)
      var found: [UniqueID] = []
      var pages = 0
      while true {
        let page = try await store.find(filter, lookingAt: 7)
        pages += 1
        found += page.tasks
        guard let next = page.next else { break }
        #expect((page.searchedTo == next.createdAt) == (page.tasks.count < 2))
        filter.cursor = next
      }
      #expect(found == [specs[20], specs[10], specs[0]].map(\.id))
      #expect(pages == 5, "30 tasks, 7 at a time")
      #expect(try await store.tasks(TaskFilter(queue: "rare")).map(\.spec.id) == found)
    }
  }

  /// The words of a list are values, not SQL.
  @Test("no word of a filter becomes a part of the statement") func words() async throws {
    try await withPostgresStore { store, _ in
      _ = try await store.apply([.submit(.noop())])
      for word in ["'", "%1$s", "$1", "\\", "a'); drop table task; --", "%", "{}", "\""] {
        let filter = TaskFilter(
          queues: [word], kinds: [TaskKind(rawValue: word)], hosts: [word], codes: [word], labels: [word: word],
          text: word)
        #expect(try await store.page(filter) == TaskPage(tasks: []), "\(word)")
        #expect(try await store.page(TaskFilter(labels: [word: nil])) == TaskPage(tasks: []), "\(word)")
        #expect(try await store.page(TaskFilter(text: word + "x'")) == TaskPage(tasks: []), "\(word)")
      }
    }
  }
}
