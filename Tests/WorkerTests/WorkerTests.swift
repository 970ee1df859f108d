import Glibc
import MemoryTaskStore
import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

@Suite struct WorkerTests {
  @Test("a worker carries tasks from the command to the events")
  func carriesTasksFromCommandToEvent() async throws {
    let bench = try WorkerBench()
    let specs = (0..<200).map { _ in noop() }
    let code = try await bench.run {
      bench.submit(specs)
      try await eventually("every task succeeds and is told of") {
        let events = try bench.sink.messages(to: bench.topics.events).map { try TaskEventJSON.decode($0.value ?? []) }
        return events.count { $0.kind == .succeeded } == specs.count
      }
    }
    #expect(code == 0)
    #expect(try await bench.store.counts() == [.succeeded: specs.count])
    #expect(try await bench.store.audit() == [])
    #expect(bench.commands.committed.count == specs.count)

    let events = bench.sink.messages(to: bench.topics.events)
    for spec in specs.prefix(5) {
      let own = try events.filter { $0.key == Array(spec.id.description.utf8) }
        .map { try TaskEventJSON.decode($0.value ?? []) }
      #expect(own.map(\.kind) == [.submitted, .started, .succeeded])
      #expect(own.map(\.sequence) == [1, 2, 3])
    }
    let snapshots = bench.sink.messages(to: bench.topics.tasks)
    #expect(try TaskDocumentJSON.decode(try #require(snapshots.last?.value)).state == .succeeded)
  }

  @Test("a worker of another fleet changes nothing and ends")
  func aWorkerOfAnotherFleetTouchesNothingAndEnds() async throws {
    let store = TestStore()
    try await store.bind(topicPrefix: "other.")
    let theirs = noop()
    _ = try await store.apply([.submit(theirs)])
    let bench = try WorkerBench(store: store)
    bench.submit([noop()])
    let code = await bench.runToEnd()
    #expect(code == WorkerProcess.misconfigured)
    #expect(try await store.counts() == [.queued: 1])
    #expect(try await store.workers() == [])
    #expect(store.sweeps == 0)
    #expect(bench.commands.committed == [])
    #expect(bench.sink.messages(to: bench.topics.events).isEmpty)
    #expect(try await store.pendingEvents(limit: 10).events.map(\.taskID) == [theirs.id])
  }

  @Test("wrong commands go to the dead letters unchanged")
  func badCommandsGoToTheDeadLettersUntouched() async throws {
    let bench = try WorkerBench()
    let good = noop()
    let poison = noop()
    bench.store.poison(poison.id)
    let garbage = Array("not json".utf8)
    try await bench.run {
      bench.commands.send(
        [CommandJSON.encode(.submit(good)), garbage, CommandJSON.encode(.submit(poison))], key: [1, 2])
      bench.control(.pause, UniqueID(high: 7, low: 7))
      try await eventually("three letters") { bench.sink.messages(to: bench.topics.deadLetters).count == 3 }
      try await eventually("the good one is applied") { try await bench.state(good.id) == .succeeded }
      try await eventually("all are committed") { bench.commands.committed.count == 4 }
    }
    let letters = bench.sink.messages(to: bench.topics.deadLetters)
    let letter = try #require(letters.first { $0.value == garbage })
    #expect(letter.key == [1, 2])
    let headers = Dictionary(letter.headers.map { ($0.name, String(decoding: $0.value, as: UTF8.self)) }) { a, _ in a }
    #expect(headers["from"] == "test")
    #expect(headers["dead-letter-topic"] == "reelhaul.commands")
    #expect(headers["dead-letter-partition"] == "3")
    #expect(headers["dead-letter-offset"] == "1")
    #expect(headers["dead-letter-timestamp"] == "1700000000000")
    #expect(headers["dead-letter-code"] == "malformed_json")
    #expect(headers["dead-letter-reason"]?.isEmpty == false)
  }

  /// The commands are valid: a fault of the server must not turn them into dead letters.
  @Test("commands wait while the database refuses them, and do not become dead letters")
  func commandsWaitWhileTheServerDoesNotLetThemBeApplied() async throws {
    let bench = try WorkerBench()
    bench.store.setForbidden(true)
    let tasks = [noop(), noop(), noop()]
    try await bench.run {
      bench.submit(tasks)
      try await eventually("each alone, and again") { bench.store.refusals > 5 }
      bench.store.setForbidden(false)
      try await eventually("all are applied") {
        for task in tasks where try await bench.state(task.id) != .succeeded { return false }
        return true
      }
    }
    #expect(bench.sink.messages(to: bench.topics.deadLetters).isEmpty)
  }

  @Test("a record that is too long for the dead letters is truncated and holds up nothing")
  func aRecordTooLongForTheDeadLettersIsCutAndHoldsUpNothing() async throws {
    let bench = try WorkerBench()
    let good = noop()
    try await bench.run {
      bench.commands.send([Array(repeating: UInt8(ascii: "x"), count: 3 << 20)], key: [1])
      bench.submit([good])
      try await eventually("the good one is applied") { try await bench.state(good.id) == .succeeded }
    }
    let letter = try #require(bench.sink.messages(to: bench.topics.deadLetters).first)
    #expect(letter.key == [1])
    #expect(letter.value?.count == DeadLetterMessage.excerpt)
    #expect(letter.headers.contains(KafkaHeader("dead-letter-cut", "3145728")))
    #expect(letter.headers.contains(KafkaHeader("from", "test")))
  }

  @Test("dead letters that are written are not written again while another one of their batch cannot be")
  func writtenLettersStay() async throws {
    let bench = try WorkerBench()
    let (long, stuck) = ([UInt8](repeating: UInt8(ascii: "x"), count: 3 << 20), Array("stuck".utf8))
    bench.sink.refuseValue(stuck)
    try await bench.run {
      bench.commands.send([Array("bad".utf8), stuck, long], key: [1])
      try await eventually("ingest tries again and again") { bench.sink.refusedValues > 2 }
      bench.sink.refuseValue(nil)
      try await eventually("all are written") { bench.sink.messages(to: bench.topics.deadLetters).count >= 3 }
    }
    let letters = bench.sink.messages(to: bench.topics.deadLetters)
    #expect(letters.map { $0.value?.count } == [3, DeadLetterMessage.excerpt, 5])
  }

  @Test("a reason that quotes a long name is cut, so that its dead letter fits")
  func longReason() {
    let origin = MessageOrigin(topic: "commands", partition: 0, offset: 0, timestamp: 0)
    let record = CommandRecord(origin: origin, value: [1])
    let letter = DeadLetterMessage.message(
      for: record, code: "c", reason: String(repeating: "é", count: 1 << 20), topic: "d")
    let reason = letter.headers.first { $0.name == "dead-letter-reason" }
    #expect(reason.map { (1024...1032).contains($0.value.count) } == true)
  }

  @Test("a signal stops a run before the next renewal")
  func aSignalStopsARunAtOnce() async throws {
    // There is no regular renewal during the test: without the signal, the worker would not learn of the intent.
    let bench = try WorkerBench {
      $0.leaseSeconds = 86_400
      $0.renewalInterval = .seconds(3600)
    }
    let spec = download()
    try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      bench.control(.pause, spec.id)
      try await eventually("a signal is sent") { bench.sink.messages(to: bench.topics.signals).count == 1 }
      let signal = bench.sink.messages(to: bench.topics.signals)[0]
      bench.signals.send([signal.value ?? []], key: signal.key)
      try await eventually("it is paused") { try await bench.state(spec.id) == .paused }
    }
  }

  @Test("a signal that cannot be sent holds up no command")
  func aSignalThatNobodyTakesHoldsUpNoCommand() async throws {
    let bench = try WorkerBench()
    let spec = download()
    try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      bench.sink.goAway()
      bench.control(.pause, spec.id)
      try await eventually("the pause is committed") { bench.commands.committed.count == 2 }
      let next = noop()
      bench.submit([next])
      try await eventually("the next command is carried out") { try await bench.state(next.id) == .succeeded }
      bench.sink.close()
    }
  }

  @Test("the relay logs one warning for each outage")
  func ofEachOutageTheRelayWarnsOnce() async throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
    let log = Logger(level: .notice, format: .json, descriptor: file.raw)
    let bench = try WorkerBench(log: log)
    try await bench.run {
      for _ in 0..<2 {
        let spec = noop()
        let refused = bench.sink.refuse(KafkaError(code: .timedOut, message: "nobody answers"))
        bench.submit([spec])
        try await eventually("several rounds are refused") { bench.sink.refused >= refused + 3 }
        bench.sink.refuse(nil)
        try await eventually("its events are published") { try await bench.store.pendingRows() == nil }
      }
    }
    log.close()
    let lines = try String(decoding: file.contents(), as: UTF8.self).split(separator: "\n")
    let warnings = lines.filter { $0.contains("\"msg\":\"the relay cannot publish events\"") }
    #expect(warnings.count == 2)
    #expect(warnings.allSatisfy { $0.contains("\"level\":\"warning\"") && $0.contains("nobody answers") })
  }

  @Test("an intent is followed without its signal")
  func anIntentIsFollowedWithoutItsSignal() async throws {
    let bench = try WorkerBench()
    let spec = download()
    try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      bench.control(.cancel, spec.id)
      try await eventually("it is canceled by the next renewal") { try await bench.state(spec.id) == .canceled }
    }
  }

  @Test("tasks on a root that hangs are handed back, and other tasks run")
  func aRootThatHangsGivesItsTasksBackAndHoldsUpNoOther() async throws {
    let bench = try WorkerBench { $0.concurrency = 2 }
    let specs = [download(), download()]
    let marker = try #require(bench.storage.roots["default"]) + "/.reelhaul/volume"
    let code = try await bench.run {
      bench.submit(specs)
      for spec in specs {
        try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      }
      bench.handler.hang()
      #expect(unlink(marker) == 0 && mkfifo(marker, 0o600) == 0)
      for spec in specs {
        try await eventually("it is queued again, and why") {
          let task = try await bench.store.task(spec.id)
          return task?.state == .queued && task?.error?.code == .storageVolumeGone
        }
        #expect(try await bench.store.task(spec.id)?.attempt == 0, "no attempt is counted")
      }
      let other = noop()
      bench.submit([other])
      try await eventually("a task that needs no storage runs") { try await bench.state(other.id) == .succeeded }
      #expect(!bench.storage.answers("default"))
      try await eventually("the storage is known to answer again", within: .seconds(60)) {
        // Lets the check go on that waits for the pipe.
        close(open(marker, O_WRONLY | O_NONBLOCK))
        return bench.storage.answers("default")
      }
    }
    #expect(code == 0)
    for spec in specs { bench.handler.end(spec.id, with: .stopped) }
    close(open(marker, O_WRONLY | O_NONBLOCK))
  }

  @Test("without the store every run stops at the fence, and continues when the store is back")
  func anAwayStoreStopsEverythingAtTheFenceAndIsWaitedFor() async throws {
    let bench = try WorkerBench { $0.leaseSeconds = 15 }
    let spec = download()
    try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      let ledger = try #require(bench.handler.ledger(spec.id))
      bench.store.setAway(true)
      bench.submit([noop()])
      try await eventually("ingest holds still") { bench.commands.isPaused }
      try await eventually("the run is stopped") { bench.handler.stoppedAt(spec.id) != nil }
      #expect(!ledger.mayWrite)
      await #expect(throws: OwnershipLost()) {
        try await ledger.checkpoint(
          Checkpoint(generation: 1))
      }
      bench.store.setAway(false)
      try await eventually("it runs again, under a new lease") {
        guard let now = bench.handler.ledger(spec.id) else { return false }
        return now !== ledger && now.mayWrite
      }
      try await eventually("ingest goes on") { !bench.commands.isPaused }
      #expect(try await bench.store.task(spec.id)?.epoch == 2)
      #expect(bench.reconnects.withLock { $0 } == 1)
    }
  }

  @Test("tasks of a claim whose answer was lost run")
  func tasksOfALostClaimRun() async throws {
    let bench = try WorkerBench()
    bench.store.loseClaims(1)
    let specs = (0..<20).map { _ in noop() }
    try await bench.run {
      bench.submit(specs)
      try await eventually("none is left behind") { try await bench.store.counts() == [.succeeded: 20] }
    }
  }

  @Test("failures are retried until no attempts are left")
  func failuresAreRetriedUntilAttemptsRunOut() async throws {
    let bench = try WorkerBench()
    var spec = download()
    spec.retry = RetryPolicy(maxAttempts: 2, intervals: [0])
    let failure = TaskFailure(code: .http(503), message: "busy", class: .retry)
    try await bench.run {
      bench.submit([spec])
      for attempt in 1...2 {
        try await eventually("attempt \(attempt)") {
          let document = try await bench.store.task(spec.id)
          return document?.attempt == attempt && bench.handler.ledger(spec.id) != nil
        }
        bench.handler.end(spec.id, with: .failed(failure))
      }
      try await eventually("it failed for good") { try await bench.state(spec.id) == .failed }
      #expect(try await bench.store.task(spec.id)?.error == failure)
    }
  }

  @Test("a task that waits counts no attempt")
  func aWaitCountsNoAttempt() async throws {
    let bench = try WorkerBench()
    let spec = download()
    let full = TaskFailure(code: .diskFull, message: "No space is left.", class: .wait)
    try await bench.run {
      bench.submit([spec])
      bench.handler.end(spec.id, with: .failed(full))
      try await eventually("it waits with the reason, and no attempt is burnt") {
        guard let document = try await bench.store.task(spec.id) else { return false }
        return document.error == full && document.state == .queued && document.attempt == 0 && document.runAt != nil
      }
    }
  }

  @Test("a task whose end the store refuses is handed back, and does not stay with its worker")
  func refusedEnd() async throws {
    let bench = try WorkerBench()
    bench.store.refuseSuccess()
    let spec = download()
    bench.handler.end(spec.id, with: .succeeded(sha256: nil, bytes: 0, output: nil))
    try await bench.run {
      bench.submit([spec])
      try await eventually("it waits, and says why", within: .seconds(60)) {
        let task = try await bench.store.task(spec.id)
        return task?.state == .queued && task?.error?.code == .settlementRefused && task?.attempt == 0
      }
      try await eventually("nothing runs") { await bench.worker.running == 0 }
    }
  }

  @Test("a run without progress is stopped")
  func aRunThatStandsStillIsStopped() async throws {
    let bench = try WorkerBench { $0.watchdog = Watchdog(patience: .milliseconds(300), grace: .seconds(60)) }
    let spec = download()
    try await bench.run {
      bench.submit([spec])
      try await eventually("its attempt failed as stalled") {
        try await bench.store.task(spec.id)?.error?.code == .stalled
      }
    }
  }

  @Test("what a run leaves for its end does not delay the end, holds its place, and is not taken for a run")
  func leftWork() async throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
    let log = Logger(level: .info, format: .json, descriptor: file.raw)
    let bench = try WorkerBench(log: log) {
      $0.concurrency = 1
      $0.watchdog = Watchdog(patience: .seconds(5), grace: .milliseconds(300))
    }
    let (spec, next) = (download(), download())
    let (gate, finished) = (Lock(false), Lock(false))
    try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      let ledger = try #require(bench.handler.ledger(spec.id))
      ledger.leave { _ in
        while !gate.withLock({ $0 }) { await Task { try? await Task.sleep(for: .milliseconds(10)) }.value }
        finished.withLock { $0 = true }
      }
      bench.handler.end(spec.id, with: .succeeded(sha256: nil, bytes: 0, output: nil))
      try await eventually("its end is written") { try await bench.state(spec.id) == .succeeded }
      bench.submit([next])
      // Longer than a run may stand still, and than one that should stop may take.
      try await Task.sleep(for: .seconds(8))
      #expect(try await bench.state(next.id) == .queued)
      #expect(!finished.withLock { $0 })
      await #expect(throws: OwnershipLost.self, "it records nothing any more") {
        try await ledger.checkpoint(Checkpoint())
      }
      gate.withLock { $0 = true }
      try await eventually("the next one runs") { bench.handler.ledger(next.id) != nil }
      #expect(finished.withLock { $0 })
      bench.handler.end(next.id, with: .succeeded(sha256: nil, bytes: 0, output: nil))
      try await eventually("the next one is over") { try await bench.state(next.id) == .succeeded }
    }
    let kinds = try bench.sink.messages(to: bench.topics.events).map { try TaskEventJSON.decode($0.value ?? []) }
      .filter { $0.taskID == spec.id }.map(\.kind)
    #expect(kinds == [.submitted, .started, .succeeded])
    log.close()
    let lines = try String(decoding: file.contents(), as: UTF8.self)
    #expect(!lines.contains("is handed back") && !lines.contains("is stopped"), "\(lines)")
  }

  @Test("progress is published and stored")
  func progressIsPublished() async throws {
    let bench = try WorkerBench()
    let spec = download()
    try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      bench.handler.ledger(spec.id)?.progress(bytesDone: 500, bytesTotal: 1000)
      try await eventually("a sample tells") {
        try bench.sink.messages(to: bench.topics.progress).contains {
          let (sample, _) = try ProgressJSON.decode($0.value ?? [])
          return sample.taskID == spec.id && sample.bytesDone == 500 && sample.bytesTotal == 1000
        }
      }
      try await eventually("and the store knows") { try await bench.store.task(spec.id)?.bytesDone == 500 }
    }
  }
}
