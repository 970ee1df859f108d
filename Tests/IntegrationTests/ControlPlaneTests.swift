import Glibc
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// Operations on many tasks, the end of a worker from afar, and dead letters, with real processes.
@Suite(.serialized) struct ControlPlaneTests {
  private func serve(_ fleet: TestFleet, _ number: Int) async throws -> ChildProcess {
    var options = ChildProcess.Options()
    options.environment = fleet.environment
    options.stdout = "\(fleet.scratch)/serve-\(number).log"
    options.stderr = options.stdout
    options.signalOnParentDeath = SIGKILL
    let process = try ChildProcess(TestFleet.binary, ["serve", "--port", "0"], options)
    try await fleet.eventually("it serves") {
      String(decoding: try TestFleet.contents("\(fleet.scratch)/serve-\(number).log"), as: UTF8.self)
        .contains("http://127.0.0.1:")
    }
    return process
  }

  @Test("an operation on thousands of tasks survives the death of its server, and applies each command once")
  func operationSurvives() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let count = 6000
    let specs = (0..<count).map { _ in
      var spec = TaskSpec(id: .make(), kind: .noop, source: "noop:", destination: nil)
      spec.paused = true
      return spec
    }
    for start in stride(from: 0, to: count, by: 1000) {
      try await fleet.client.submit(Array(specs[start..<start + 1000]))
    }
    try await fleet.eventually("all are there") {
      try await fleet.pool.query("select count(*) from task")[0].int64(0) == count
    }
    var filter = OperationFilter()
    filter.states = [.paused]
    let operation = try await fleet.store.createOperation(
      TaskOperation(
        id: .make(), action: .cancel, selection: .filter(filter), actor: "test",
        createdAt: Timestamp(microseconds: Clocks.realtimeMicroseconds())))
    // The operation cannot end before its commands are applied.
    let worker = try #require(fleet.running.first)
    worker.kill(SIGSTOP)
    let first = try await serve(fleet, 1)
    try await fleet.eventually("it has sent some") {
      try await fleet.store.operation(operation.id)?.progress.sent ?? 0 > 0
    }
    first.kill(SIGKILL)
    _ = await first.wait()
    let left = try #require(try await fleet.store.operation(operation.id))
    worker.kill(SIGCONT)
    let second = try await serve(fleet, 2)
    try await fleet.eventually("it ends") { try await fleet.store.operation(operation.id)?.finishedAt != nil }
    let ended = try #require(try await fleet.store.operation(operation.id))
    #expect(left.finishedAt == nil, "the first server was killed too late")
    #expect(ended.state == .done && ended.error == nil)
    #expect(ended.progress.matched == count && ended.progress.applied == count && ended.progress.refused == 0)
    #expect(try await fleet.store.counts() == [.canceled: count])
    #expect(try await fleet.pool.query("select count(*) from task where sequence <> 2")[0].int64(0) == 0)
    #expect(try await fleet.store.audit() == [])
    second.kill(SIGTERM)
    #expect(await second.wait() == .exited(0))
    await fleet.stop()
  }

  @Test("too short an end of an id drains no worker, and what is still to pause may be resumed") func careful()
    async throws
  {
    let fleet = try await TestFleet.start(workers: 0)
    let boot = UniqueID.make()
    let worker = try await fleet.store.register(
      WorkerRegistration(boot: boot, host: "mill", pid: 4711, leaseSeconds: 3600, kinds: [.noop], volumes: [:]))
    for word in [0, 1, 5].map({ String("\(boot)".suffix($0)) }) {
      #expect(try await fleet.run(["workers", "drain", word]).status == .exited(4), "\(word)")
    }
    #expect(try await fleet.store.workers().allSatisfy { !$0.isDraining })
    let spec = TaskSpec(id: .make(), kind: .noop, source: "noop:")
    _ = try await fleet.store.apply([.submit(spec)])
    #expect(try await fleet.store.claim(worker, limit: 1, call: 1).count == 1)
    #expect(try await fleet.run(["resume", "\(spec.id)"]).status == .exited(5))
    _ = try await fleet.store.apply([.control(.init(id: .make(), taskID: spec.id, action: .pause))])
    #expect(try await fleet.run(["resume", "\(spec.id)"]).status == .exited(0))
    await fleet.stop()
  }

  @Test("who drains a worker of an earlier version is told to send SIGTERM") func drainOldWorker() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let boot = UniqueID.make()
    _ = try await fleet.store.register(
      WorkerRegistration(boot: boot, host: "mill", pid: 4711, leaseSeconds: 3600, kinds: [.noop], volumes: [:]))
    let drained = try await fleet.run(["workers", "drain", "\(boot)"])
    #expect(drained.status == .exited(0))
    #expect(drained.output.contains("send SIGTERM to its process 4711 on mill"), "\(drained.output)")
    #expect(!drained.output.contains("it hands back its tasks"))
    await fleet.stop()
  }

  @Test("a worker that is drained from afar hands its download back, ends with 0, and another one continues it")
  func drain() async throws {
    let fleet = try await TestFleet.start(workers: 2)
    let size: Int64 = 20_000_000
    fleet.origin.serve("/film.mp4", OriginFile(seed: 1, size: size))
    let end = fleet.origin.hold("/film.mp4", from: size - 1_000_000)
    let task = try await fleet.download("/film.mp4")
    try await fleet.wait(for: task, "recorded bytes") { $0.state == .running && $0.bytesDone > 0 }
    let owner = try #require(try await fleet.owner(of: task))
    let worker = try #require(try await fleet.store.task(task)?.worker)
    let answer = try await fleet.run(["workers", "drain", String("\(worker)".suffix(8))])
    #expect(answer.status == .exited(0), "\(answer.output)")
    #expect(await owner.wait() == .exited(0))
    try await fleet.wait(for: task, "another worker") { $0.state == .running && $0.worker != worker }
    end.open()
    try await fleet.wait(for: task, .succeeded)
    let history = try await fleet.store.history(of: task)
    #expect(history.contains { $0.type == "released" && $0.worker == worker })
    let shown = try await fleet.run(["show", "\(task)", "--history"])
    #expect(shown.status == .exited(0) && shown.output.contains("released") && shown.output.contains("succeeded"))
    #expect(try await fleet.run(["workers", "drain", "\(worker)"]).status == .exited(4))
    await fleet.stop()
  }

  @Test("the command line acts on everything that matches, says before what it will do, and replays dead letters")
  func commandLine() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let ids = (0..<30).map { _ in UniqueID.make() }
    try await fleet.client.submit(
      ids.enumerated().map { index, id in
        var spec = TaskSpec(id: id, kind: .noop, source: "noop:", destination: nil)
        spec.paused = true
        spec.queue = index < 20 ? "archive" : "default"
        return spec
      })
    try await fleet.eventually("all are there") { try await fleet.store.counts() == [.paused: 30] }
    // Two pages have all tasks, each once.
    let first = try await fleet.run(["list", "--json", "--limit", "20"]).output
    let cursor = try #require(first.firstMatch(of: /'--cursor ([^']+)' continues/).map { String($0.1) }, "\(first)")
    let rest = try await fleet.run(["list", "--json", "--limit", "20", "--cursor", cursor]).output
    let pages = [first, rest].map { $0.matches(of: /\{"id":"([0-9a-f-]{36})"/).map { String($0.1) } }
    #expect(pages.map(\.count) == [20, 10] && Set(pages.joined()) == Set(ids.map { "\($0)" }), "\(pages)")
    let dry = try await fleet.run(["cancel", "--all", "--queue", "archive", "--dry-run"])
    #expect(dry.status == .exited(0) && dry.output.contains("cancel would go to 20 tasks"), "\(dry.output)")
    #expect(try await fleet.store.counts() == [.paused: 30])
    let done = try await fleet.run(["cancel", "--all", "--queue", "archive"])
    #expect(done.status == .exited(0) && done.output.contains("cancel: 20 matched, 20 applied"), "\(done.output)")
    #expect(try await fleet.store.counts() == [.paused: 10, .canceled: 20])
    #expect(try await fleet.store.history(of: ids[0]).last?.actor?.hasPrefix("cli:") == true)
    let listed = try await fleet.run(["operations"])
    #expect(listed.status == .exited(0) && listed.output.contains("queue archive  done"), "\(listed.output)")
    let operation = try #require(try await fleet.store.operations(limit: 1, within: nil).first)
    let late = try await fleet.run(["operations", "cancel", String("\(operation.id)".suffix(8))])
    #expect(late.status == .exited(1) && late.output.contains("it is done"), "\(late.output)")
    for files in [false, true] {
      let words = ["remove", "--all", "--queue", "nobody"] + (files ? ["--files"] : [])
      #expect(try await fleet.run(words).status == .exited(0))
      #expect(try await fleet.store.operations(limit: 1, within: nil).first?.action == .remove(files: files))
    }
    try await cancelOne(fleet)
    let begun = try await fleet.store.createOperation(
      TaskOperation(
        id: .make(), action: .cancel, selection: .ids([ids[29]]), createdAt: Timestamp(microseconds: 0)))
    let canceled = try await fleet.run(["operations", "cancel", String("\(begun.id)".suffix(8)), "--json"])
    #expect(canceled.status == .exited(0) && canceled.output.contains(#""state":"canceled""#), "\(canceled.output)")
    #expect(try await fleet.run(["operations", "cancel", "ffffffff"]).status == .exited(4))
    for wrong in [
      ["cancel"], ["cancel", "--queue", "a", "\(ids[0])"], ["cancel", "--all", "\(ids[0])"],
      ["cancel", "--all", "--wait"],
    ] {
      #expect(try await fleet.run(wrong).status == .exited(2), "\(wrong)")
    }

    // A command that its task does not allow, sent by somebody who did not look.
    try await fleet.client.resume(ids[0])
    var letter = ""
    try await fleet.eventually("it is a dead letter") {
      let list = try await fleet.run(["dead-letters", "--json"]).output
      letter = list.firstMatch(of: /"id":"([0-9]+-[0-9]+)"/).map { String($0.1) } ?? ""
      return list.contains("illegal_transition") && !letter.isEmpty
    }
    let incomplete = try await fleet.run(["dead-letters", "drop", letter, "3-99999"])
    #expect(incomplete.status == .exited(4), "\(incomplete.output)")
    let twice = try await fleet.run(["dead-letters", "list", letter, letter, "--json"]).output
    #expect(twice.hasPrefix("[{") && twice.count { $0 == "\n" } == 1, "\(twice)")
    #expect(try await fleet.run(["dead-letters", "--json"]).output.contains(letter), "it was not dropped")
    let retry = #"{"command":"retry","taskId":"\#(ids[0])"}"#
    let replayed = try await fleet.run(["dead-letters", "replay", letter, "--command", retry])
    #expect(replayed.status == .exited(0), "\(replayed.output)")
    try await fleet.eventually("the retry is carried out") {
      try await fleet.store.task(ids[0])?.state == .succeeded
    }
    #expect(try await fleet.run(["dead-letters"]).output.contains("There are no dead letters."))
    #expect(try await fleet.run(["dead-letters", "drop", "3-99999"]).status == .exited(4))

    // No command at all, and what would clear the terminal.
    let producer = try KafkaProducer(KafkaConfiguration(bootstrap: fleet.bootstrap))
    try await producer.send(
      topic: TopicPlan(prefix: fleet.prefix).commands, key: nil, value: Array("no command \u{1B}[2J".utf8))
    await producer.close()
    try await fleet.eventually("it is a dead letter, too") {
      let list = try await fleet.run(["dead-letters", "--json"]).output
      letter = list.firstMatch(of: /"id":"([0-9]+-[0-9]+)"/).map { String($0.1) } ?? ""
      return !letter.isEmpty
    }
    let whole = try await fleet.run(["dead-letters", "list", letter]).output
    #expect(whole.contains("no command \u{FFFD}[2J") && !whole.contains("\u{1B}"), "\(whole)")
    #expect(try await fleet.run(["dead-letters", "drop", letter]).status == .exited(0))
    #expect(try await fleet.run(["dead-letters"]).output.contains("There are no dead letters."))
    await fleet.stop()
  }

  /// Cancels an operation of the command line while it waits for its commands.
  private func cancelOne(_ fleet: TestFleet) async throws {
    // It cannot end before its commands are applied.
    let worker = try #require(fleet.running.first)
    worker.kill(SIGSTOP)
    var options = ChildProcess.Options()
    options.environment = fleet.environment
    options.stdout = "\(fleet.scratch)/canceled.log"
    options.stderr = options.stdout
    options.signalOnParentDeath = SIGKILL
    let process = try ChildProcess(TestFleet.binary, ["cancel", "--all", "--queue", "default"], options)
    var begun: TaskOperation?
    try await fleet.eventually("it has sent its commands") {
      begun = try await fleet.store.operations(limit: 1, within: nil).first
      return begun?.action == .cancel && begun?.progress.sent == 10
    }
    let id = try #require(begun?.id)
    #expect(try await fleet.run(["operations", "cancel", "\(id)"]).status == .exited(0))
    worker.kill(SIGCONT)
    #expect(await process.wait() == .exited(1))
    let told = String(decoding: try TestFleet.contents("\(fleet.scratch)/canceled.log"), as: UTF8.self)
    #expect(told.contains("; it was canceled"), "\(told)")
  }
}
