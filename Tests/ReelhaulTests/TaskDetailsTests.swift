import CommandLineKit
import MemoryTaskStore
import ReelhaulCodec
import ReelhaulMessages
import TaskAdvice
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine

@testable import reelhaul

@Suite struct TaskDetailsTests {
  private func document(_ state: TaskState, after: [UniqueID] = []) -> TaskDocument {
    TaskDocument(
      spec: TaskSpec(id: UniqueID(high: 0, low: 99), kind: .download, source: "https://a.example/f.mp4", after: after),
      state: state, worker: UniqueID(high: 0, low: 7), epoch: 3, createdAt: Timestamp(microseconds: 0))
  }

  @Test("show calls a worker the last one if it no longer has the task", arguments: TaskState.allCases)
  func aWorkerIsOneThatHasTheTask(_ state: TaskState) throws {
    let lines = TaskDetails.lines(TaskReport(task: document(state), waits: nil))
    let line = try #require(lines.first { $0.contains("(epoch 3)") })
    #expect(line.hasPrefix(state == .running || state == .publishing ? "worker " : "last worker "))
  }

  @Test(
    "show says how many attempts there are at most, unless only the workers of an own kind know",
    arguments: [("download", 8, "0 of 8"), ("own", 8, "0"), ("own", 5, "0 of 5")])
  func attempts(kind: String, most: Int, text: String) throws {
    var task = document(.queued)
    (task.spec.kind, task.spec.retry.maxAttempts) = (TaskKind(rawValue: kind), most)
    let lines = TaskDetails.lines(TaskReport(task: task, waits: nil))
    let line = try #require(lines.first { $0.hasPrefix("attempt ") })
    #expect(line.dropFirst("attempt".count).trimmingPrefix { $0 == " " } == text)
  }

  @Test("a task was submitted before it was started, although the claim that found it may have begun before")
  func history() {
    var task = document(.succeeded)
    task.createdAt = Timestamp(microseconds: 5)
    task.startedAt = Timestamp(microseconds: 3)
    task.finishedAt = Timestamp(microseconds: 9)
    #expect(TaskHistory(of: task, []).entries.map(\.type) == ["submitted", "started", "succeeded"])
    // So may the command.
    let resumed = HistoryEntry(
      type: "resumed", sequence: 2, at: Timestamp(microseconds: 7), attempt: 0, epoch: task.epoch - 1)
    #expect(TaskHistory(of: task, [resumed]).entries.map(\.type) == ["submitted", "resumed", "started", "succeeded"])
  }

  @Test("show has a map of the recorded ranges of a download, and the parts of an upload")
  func recordedWork() {
    var ranges = ByteRanges(0..<500)
    ranges.insert(750..<770)
    func line(_ name: String, _ recorded: RecordedWork) -> String? {
      TaskDetails.lines(TaskReport(task: document(.running), waits: nil, recorded: recorded)).first {
        $0.hasPrefix("\(name) ")
      }
    }
    let map = "[" + String(repeating: "#", count: 25) + String(repeating: ".", count: 12) + "++"
    #expect(line("map", .ranges(ranges, size: 1000))?.contains(map) == true)
    let first = line("map", .ranges(ByteRanges(0..<1), size: .max))
    #expect(first?.hasSuffix("[+" + String(repeating: ".", count: 49) + "]") == true)
    var download = DownloadCheckpoint(
      generation: 0, identity: SourceIdentity(finalURL: "https://a.example/", size: 1000), volume: .random(),
      stagingName: "a")
    download.done = ranges
    for kind in [TaskKind.download, .copy] {
      #expect(RecordedWork(download.envelope, of: kind) == .ranges(ranges, size: 1000))
    }
    #expect(RecordedWork(download.envelope, of: .upload) == nil && RecordedWork(download.envelope, of: .noop) == nil)
    var sent = ByteRanges(0..<24 << 20)
    // The last part is shorter, and one is there in part.
    sent.insert(48 << 20..<50 << 20)
    sent.insert(32 << 20..<34 << 20)
    let plan = UploadPlan(segmentSize: 8 << 20, parallel: 4)
    let parts = RecordedWork.parts(sent, plan, size: 50 << 20)
    #expect(line("parts", parts)?.hasSuffix("4 of 7, of 8.0 MiB") == true)
    let upload = "[" + String(repeating: "#", count: 24) + String(repeating: ".", count: 8) + "##" + "..............##]"
    #expect(line("map", parts)?.hasSuffix(upload) == true)
    #expect(line("map", .parts(ByteRanges(), plan, size: 50 << 20)) == nil)
  }

  /// An empty column has no information.
  @Test("list has a column for errors only if a task has one")
  func errorsAreListedIfThereAreAny() {
    var failed = document(.failed)
    failed.error = TaskFailure(code: .http(404), message: "…", class: .fail)
    let terminal = Terminal(descriptor: -1, environment: [:])
    #expect(!Table.tasks([document(.succeeded)]).lines(on: terminal)[0].contains("ERROR"))
    let lines = Table.tasks([failed, document(.succeeded)]).lines(on: terminal)
    #expect(lines[0].contains("ERROR") && lines[1].contains("http_404") && !lines[2].contains("http_404"))
  }

  /// The error of an earlier attempt is not important for a running task.
  @Test(
    "show calls the error of an earlier attempt the last error",
    arguments: [
      (TaskState.running, "last error"), (.publishing, "last error"), (.failed, "error"), (.queued, "error"),
    ])
  func errorsOfEarlierAttemptsAreNamedSo(_ state: TaskState, _ name: String) {
    var task = document(state)
    task.error = TaskFailure(code: .init(rawValue: "connection_reset"), message: "The server hung up.", class: .retry)
    #expect(
      TaskDetails.lines(TaskReport(task: task, waits: nil)).contains {
        $0.hasPrefix("\(name) ") && $0.contains("connection_reset")
      })
    #expect(task.line.contains("connection_reset") == (name == "error"))
  }

  @Test("show lists every setting of the task, and hides header values")
  func requestedSettingsAreShown() {
    var task = document(.failed)
    let plain = TaskDetails.lines(TaskReport(task: task, waits: nil)).count
    task.spec.notBefore = Timestamp("2026-01-31T20:00:00Z")
    task.spec.expect = TaskCore.Expectation(sha256: [1, 0xAB], md5: [2], bytes: 77)
    task.spec.ifExists = .skip
    task.spec.rate = 1 << 20
    task.spec.connections = 4
    task.spec.headers = [HeaderField(name: "Referer", value: "hush"), HeaderField(name: "X-Any", value: "hush")]
    task.spec.credential = "studio"
    task.spec.retry.intervals = [5, 30]
    task.spec.allowUnframed = true
    task.spec.notify = "https://hooks.example/h?key=hush"
    task.error = TaskFailure(code: .http(503), message: "busy", class: .retry, retryAfter: 60)
    let lines = TaskDetails.lines(TaskReport(task: task, waits: nil)).map {
      $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }
    for line in [
      "not before 2026-01-31T20:00:00.000000Z", "expected sha256 01ab", "expected md5 02", "expected bytes 77",
      "if exists skip", "rate limit 1.0 MiB/s", "connections at most 4", "headers Referer, X-Any", "credential studio",
      "retry after 5 s, 30 s", "allow unframed yes", "web hook https://hooks.example/h?key=***",
      "error http_503: busy (asked to wait 60 s)",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
    #expect(lines.count == plain + 13)
    task.error?.retryAfter = RetryPolicy.longestRetryAfter
    let longest = TaskDetails.lines(TaskReport(task: task, waits: nil))
    #expect(longest.contains { $0.hasSuffix("busy (asked to wait 3600 s or more)") })
    #expect(!lines.contains { $0.contains("hush") })
    let document = String(
      decoding: JSONWriter.write { TaskReport(task: task, waits: "for you").write(to: &$0) }, as: UTF8.self)
    #expect(
      document.hasSuffix(
        """
        "labels":{},"parameters":null,"status":"failed","waits":"for you",\
        "spec":{"notBefore":"2026-01-31T20:00:00.000000Z","expect":{"sha256":"01ab","md5":"02","bytes":77},"ifExists":"skip","headers":["Referer","X-Any"],\
        "retryAfter":[5,30],"rate":1048576,"connections":4,"credential":"studio","allowUnframed":true,"notify":"https://hooks.example/h?key=***",\
        "traceparent":null,"tracestate":null}}
        """), "\(document)")
  }

  @Test("no text of a task reaches the terminal with control characters")
  func textsArePrintable() {
    var task = document(.failed)
    task.spec.labels = ["title": "a\u{1B}[2J", "k\u{1B}[2J": "v\u{1B}]0;x\u{7}"]
    task.error = TaskFailure(code: .http(503), message: "busy\r\u{1B}[1A", class: .retry)
    let lines = TaskDetails.lines(TaskReport(task: task, waits: nil))
    #expect(lines.contains { $0.contains("k\u{FFFD}[2J") && $0.contains("v\u{FFFD}]0;x\u{FFFD}") })
    #expect(lines.allSatisfy { $0.unicodeScalars.allSatisfy { $0.value >= 32 } }, "\(lines)")
  }

  @Test("show has what an upload made line by line, without the values of a query")
  func theOutputOfAnUploadIsShown() {
    var task = document(.succeeded)
    task.spec.kind = .upload
    task.spec.destination = "https://a.example/b?sig=hush"
    let output = UploadOutput(
      location: "https://a.example/b?sig=hush", etag: "\"1f\"", bytes: 9, verified: .crc32c, remark: "not so")
    task.output = output.json
    let lines = TaskDetails.lines(TaskReport(task: task, waits: nil)).map {
      $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }
    for line in [
      "destination https://a.example/b?sig=***", "location https://a.example/b?sig=***", "etag \"1f\"",
      "verified crc32c", "remark not so",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
    #expect(!lines.contains { $0.hasPrefix("output") || $0.hasPrefix("version") || $0.contains("hush") })
    task.output = Array(#"{"verified":"other"}"#.utf8)
    #expect(TaskDetails.lines(TaskReport(task: task, waits: nil)).contains { $0.hasSuffix(#"{"verified":"other"}"#) })
  }

  @Test("show has the output of a task that succeeded")
  func theOutputIsShown() {
    var task = document(.succeeded)
    task.output = Array(#"{"verified":"two_fetches"}"#.utf8)
    let lines = TaskDetails.lines(TaskReport(task: task, waits: nil))
    #expect(lines.contains { $0.hasPrefix("output ") && $0.hasSuffix(#" {"verified":"two_fetches"}"#) })
  }

  @Test("show names the predecessors of a blocked task")
  func aBlockedTaskNamesWhatItWaitsFor() async throws {
    let store = MemoryStore()
    func task(_ low: UInt64, after: [UniqueID] = []) -> TaskSpec {
      TaskSpec(id: UniqueID(high: 1, low: low), kind: .noop, source: "https://a.example/f.mp4", after: after)
    }
    let (failed, queued, succeeded) = (task(1), task(2), task(3))
    let absent = UniqueID(high: 1, low: 4)
    let worker = try await store.register(
      WorkerRegistration(boot: absent, host: "a", pid: 1, leaseSeconds: 60, kinds: [.noop], volumes: [:]))
    _ = try await store.apply([.submit(failed), .submit(succeeded)])
    let claims = try await store.claim(worker, limit: 2, call: 1)
    _ = try await store.settle(
      claims.map { claim in
        Settlement(
          taskID: claim.spec.id, epoch: claim.epoch,
          outcome: claim.spec.id == failed.id
            ? .failed(TaskFailure(code: .init(rawValue: "gone"), message: "", class: .fail), retryIn: nil)
            : .succeeded(sha256: nil, bytes: 1))
      })
    let last = task(5, after: [failed.id, queued.id, succeeded.id, absent])
    _ = try await store.apply([
      .submit(queued), .submit(last),
      .control(Command.Control(id: .random(), taskID: succeeded.id, action: .remove(files: false))),
    ])
    let blocked = try #require(try await store.task(last.id))
    #expect(blocked.state == .blocked)
    let report = try await TaskReport.of([blocked], in: store)[0]
    #expect(
      report.waits
        == "for \(failed.id) (failed: 'reelhaul retry \(failed.id)'), \(queued.id) (queued), "
        + "\(absent) (it does not exist: submit it, or cancel this task; the id of a removed task is not free for 17 days)"
    )
    #expect(TaskDetails.lines(report).contains { $0.hasPrefix("waits") && $0.contains("(queued)") })
  }

  @Test(
    "a predecessor holds a task only if it has failed or is canceled or paused",
    arguments: [TaskState.failed, .canceled, .paused, .queued, .succeeded])
  func onlyStoppedPredecessorsHoldATask(_ state: TaskState) {
    let first = UniqueID(high: 0, low: 1)
    let hold = WaitReason.hold(of: document(.blocked, after: [first]), states: [first: state])
    #expect((hold != nil) == [.failed, .canceled, .paused].contains(state))
    #expect((WaitReason.hold(of: document(state), states: [:]) != nil) == (state == .paused))
  }

  /// Each task has its own list, even if several are requested together.
  @Test("each of several tasks has its own reason to wait")
  func everyTaskHasItsOwnReason() async throws {
    let store = MemoryStore()
    let specs = [UniqueID(high: 0, low: 9)].flatMap { [[$0], []] }.enumerated().map { index, after in
      TaskSpec(id: UniqueID(high: 2, low: UInt64(index)), kind: .noop, source: "https://a.example/f.mp4", after: after)
    }
    _ = try await store.apply(specs.map(Command.submit))
    let documents = try await store.tasks(specs.map(\.id))
    let reports = try await TaskReport.of(specs.compactMap { documents[$0.id] }, in: store)
    #expect(reports.map { $0.waits?.prefix(12) } == ["for 00000000", "for a worker"])
  }

  /// An existing task is the one that was submitted first.
  @Test("the differences between two tasks with the same id are named")
  func anotherTaskOfTheSameIDIsToldApart() throws {
    let first = TaskSpec(
      id: UniqueID(high: 0, low: 1), kind: .download, source: "https://a.example/f.mp4",
      headers: [HeaderField(name: "A", value: "1"), HeaderField(name: "B", value: "2")])
    var second = first
    second.headers.reverse()
    second.priority = 7
    #expect(first.differences(from: second) == [])
    second.source = "https://a.example/other.mp4"
    second.retry.maxAttempts = 2
    second.labels["title"] = "x"
    #expect(first.differences(from: second) == ["source", "maxAttempts", "labels"])
  }

  @Test("many predecessors are counted instead of named")
  func manyAreCounted() throws {
    let reason = try #require(
      WaitReason.predecessors(
        of: document(.blocked, after: (1...7).map { UniqueID(high: 0, low: $0) }),
        states: [UniqueID(high: 0, low: 1): .paused]))
    #expect(reason.contains("(paused: 'reelhaul resume 00000000-0000-0000-0000-000000000001')"))
    #expect(reason.hasSuffix(" and 2 others"))
    #expect(WaitReason.predecessors(of: document(.paused, after: [UniqueID(high: 0, low: 1)]), states: [:]) == nil)
  }
}
