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

/// How a worker ends.
extension WorkerTests {
  /// The drain waits for Kafka during four fifths of this time. The last fifth is enough to give up the lease, even on
  /// a busy machine.
  private static let drainWithoutKafka = Duration.seconds(15)

  @Test("a worker that somebody asks to drain hands its tasks back and ends with 0")
  func drainsWhenAsked() async throws {
    let bench = try WorkerBench()
    let spec = noop()
    bench.submit([spec])
    let ending = Task { await bench.runToEnd() }
    try await eventually("it has a lease, and the task is done") { try await bench.state(spec.id) == .succeeded }
    bench.store.inner.drainWorkers()
    #expect(await ending.value == 0)
    #expect(try await bench.store.workers() == [])
    #expect(try await bench.store.audit() == [])
  }

  @Test("a drain hands back running tasks, publishes their events and gives up the lease")
  func drainingHandsBackWhatRuns() async throws {
    let bench = try WorkerBench()
    let specs = (0..<5).map { _ in download() }
    let code = try await bench.run {
      bench.submit(specs)
      try await eventually("all run") { await bench.worker.running == 5 }
    }
    #expect(code == 0)
    #expect(try await bench.store.counts() == [.queued: 5])
    for spec in specs { #expect(try await bench.store.task(spec.id)?.attempt == 0, "no attempt is counted") }
    let events = try bench.sink.messages(to: bench.topics.events).map { try TaskEventJSON.decode($0.value ?? []).kind }
    #expect(events.count { $0 == .released } == 5, "its last events are published too")
    #expect(try await bench.store.pendingRows() == nil)
    #expect(try await bench.store.workers().isEmpty, "the lease is given up")
    #expect(try await bench.store.audit() == [])
  }

  @Test("tasks whose claim is under way when the drain begins are handed back, too") func drainDuringClaim()
    async throws
  {
    let bench = try WorkerBench()
    let spec = download()
    bench.store.holdClaims(true)
    bench.submit([spec])
    let ending = Task { await bench.runToEnd() }
    try await eventually("the claim is under way") { bench.store.heldClaims > 0 }
    await bench.worker.requestStop()
    try await Task.sleep(for: .milliseconds(100))
    bench.store.holdClaims(false)
    #expect(await ending.value == 0)
    #expect(try await bench.store.counts() == [.queued: 1])
    #expect(try await bench.store.task(spec.id)?.attempt == 0, "no attempt is counted")
    let events = try bench.sink.messages(to: bench.topics.events).map { try TaskEventJSON.decode($0.value ?? []).kind }
    #expect(events.last == .released, "\(events)")
  }

  @Test("a drain after the lease was lost with running tasks exits with 1")
  func aDrainWithoutItsLeaseTellsThatTasksAreLeft() async throws {
    let bench = try WorkerBench { $0.leaseSeconds = 15 }
    let spec = download()
    let code = try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      bench.store.setAway(true)
      try await eventually("the lease is lost") { await bench.worker.running == 0 }
    }
    #expect(code == DrainMachine.unfinished)
  }

  @Test("a drain while Kafka is away hands back running tasks")
  func aDrainWhileKafkaIsAwayHandsBackWhatRuns() async throws {
    let bench = try WorkerBench { $0.drainLimit = Self.drainWithoutKafka }
    let spec = download()
    let code = try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      try await eventually("its events are published") { try await bench.store.pendingRows() == nil }
      bench.sink.goAway()
      bench.commands.send([Array("not json".utf8)])
      try await eventually("ingest waits for its dead letter") { bench.sink.isWaitedFor }
    }
    #expect(code == 0)
    #expect(try await bench.state(spec.id) == .queued)
    #expect(try await bench.store.workers().isEmpty, "the lease is given up")
    #expect(try await bench.store.pendingRows() != nil, "the next worker publishes the last events")
  }

  @Test("a drain while a round is being published gives up the lease")
  func aDrainWhileARoundIsInFlightGivesUpTheLease() async throws {
    let bench = try WorkerBench { $0.drainLimit = Self.drainWithoutKafka }
    let code = try await bench.run {
      bench.sink.goAway()
      bench.submit([noop()])
      try await eventually("the relay waits for its round") { bench.sink.isWaitedFor }
    }
    #expect(code == 0)
    #expect(try await bench.store.workers().isEmpty)
  }

  @Test("a drain does not wait for a root that hangs")
  func aDrainDoesNotWaitForARootThatHangs() async throws {
    let bench = try WorkerBench { $0.drainLimit = .seconds(60) }
    let spec = download()
    // Opening a pipe without a writer blocks, like a file system whose server is gone.
    let marker = try #require(bench.storage.roots["default"]) + "/.reelhaul/volume"
    let code = try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      #expect(unlink(marker) == 0 && mkfifo(marker, 0o600) == 0)
      // The watch looks every second, and detaches a run that has hung for five seconds.
      try await Task.sleep(for: .seconds(4))
    }
    try await eventually("a call waits there") {
      let writer = open(marker, O_WRONLY | O_NONBLOCK)
      if writer >= 0 { close(writer) }
      return writer >= 0
    }
    #expect(code == 0)
    #expect(try await bench.state(spec.id) == .queued)
  }

  /// The code with which a worker ends that is drained while the run of `spec` does not stop.
  private func drained(_ bench: WorkerBench, whileHanging spec: TaskSpec) async throws -> Int32 {
    let code = try await bench.run {
      bench.submit([spec])
      try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
      bench.handler.hang()
    }
    bench.handler.end(spec.id, with: .stopped)
    return code
  }

  @Test("a drain does not wait for a run that does not stop")
  func aDrainWaitsNoLongerForARunThatIsLetGo() async throws {
    let bench = try WorkerBench {
      $0.watchdog = Watchdog(patience: .seconds(600), grace: .milliseconds(300))
      $0.drainLimit = .seconds(120)
    }
    let spec = download()
    let code = try await drained(bench, whileHanging: spec)
    #expect(code == 0)
    #expect(try await bench.state(spec.id) == .queued)
    #expect(try await bench.store.workers().isEmpty, "the lease is given up")
  }

  @Test("a draining worker leaves its commands to others while its runs end")
  func aDrainLeavesItsCommandsFirst() async throws {
    let bench = try WorkerBench {
      $0.watchdog = Watchdog(patience: .seconds(600), grace: .seconds(600))
      $0.drainLimit = .seconds(120)
    }
    let spec = download()
    let isRunning = Lock(false)
    let ending = Task {
      try await bench.run {
        bench.submit([spec])
        try await eventually("it runs") { bench.handler.ledger(spec.id) != nil }
        bench.handler.hang()
        isRunning.withLock { $0 = bench.commands.isMember }
      }
    }
    try await eventually("others may read them") { isRunning.withLock { $0 } && !bench.commands.isMember }
    #expect(bench.handler.ledger(spec.id) != nil)
    bench.handler.end(spec.id, with: .stopped)
    #expect(try await ending.value == 0)
    #expect(try await bench.state(spec.id) == .queued)
  }

  @Test("the log of a drain that is cut short names the tasks that still run")
  func aDrainThatIsCutShortTellsWhatRuns() async throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
    let log = Logger(level: .error, format: .json, descriptor: file.raw)
    let bench = try WorkerBench(log: log) { $0.drainLimit = .milliseconds(300) }
    let spec = download()
    let code = try await drained(bench, whileHanging: spec)
    log.close()
    let lines = try String(decoding: file.contents(), as: UTF8.self).split(separator: "\n")
    #expect(code == DrainMachine.unfinished)
    #expect(lines.count { $0.contains("the drain is not complete") } == 1, "\(lines)")
    #expect(lines.count { $0.contains("\(spec.id)") && $0.contains("\"kind\":\"download\"") } == 1, "\(lines)")
  }
}
