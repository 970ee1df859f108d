import FoundationEssentials
import Glibc
import MemoryTaskStore
import ReelhaulSystem
import ReelhaulTelemetry
import ReelhaulTestKit
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

@testable import ReelhaulWorker

@Suite struct HandlerAdapterTests {
  /// A later version of the worker, or of the handler, may have written it.
  @Test("a field of a handler's line never has the name of another one") func logFields() {
    let fields = TaskLogger.renamed([("msg", "a"), ("ts", "b"), ("msg_", "c"), ("task", "d"), ("x", "e"), ("x", "f")])
    #expect(fields.map(\.0) == ["msg_", "ts_", "msg__", "task_", "x", "x_"])
    #expect(fields.map(\.1) == ["a", "b", "c", "d", "e", "f"])
  }

  @Test(
    "a task whose checkpoint this worker cannot read waits, and its handler is not run",
    arguments: [(2, #"{"checkpoint":{"step":2}}"#), (1, #"{"checkpoint":{"steps":[1,2]}}"#), (1, "[]")])
  func newerCheckpoint(version: Int, payload: String) async throws {
    let wasRun = Lock(false)
    let handler = Scripted { _ -> Int in
      wasRun.withLock { $0 = true }
      return 1
    }
    let outcome = try await run(handler, from: Checkpoint(version: version, payload: Array(payload.utf8)))
    guard case .failed(let failure) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(failure.code == .checkpointUnreadable && failure.class == .wait)
    #expect(!wasRun.withLock { $0 })
  }

  /// Fails with a text that PostgreSQL would refuse, and that nobody may read.
  private struct Leaking: TaskHandler {
    struct Parameters: Codable, Sendable {}
    struct Checkpoint: Codable, Sendable { var part: Int }
    static let kind = "leaking"

    func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> NoOutput { NoOutput() }

    func cleanUp(_ parameters: Parameters, after checkpoint: Checkpoint, storage: TaskStorage) async throws {
      throw TaskError.retry(
        "DELETE https://user:hunter2@host/a?sig=abcdef\u{0}failed " + String(repeating: "x", count: 1 << 20))
    }
  }

  @Test("the error of a clean-up is masked and can be stored, as that of a run")
  func cleanUpErrors() async throws {
    let cleanup = Cleanup(
      id: 1, spec: try TaskSpec(Leaking.self, .init()),
      checkpoint: Checkpoint(version: 1, payload: Array(#"{"checkpoint":{"part":2}}"#.utf8)), files: false, attempt: 1)
    let adapter = HandlerAdapter(Leaking(), roots: nil, log: Logger(level: .error))
    let failure = await #expect(throws: TaskFailure.self) { try await adapter.cleanUp(cleanup) }
    let message = try #require(failure?.message)
    #expect(message.contains("host/a") && message.count <= 1000 && !message.utf8.contains(0))
    for secret in ["hunter2", "abcdef"] { #expect(!message.contains(secret)) }
  }

  /// Its own checks fail with a text that nobody could store or publish, and that nobody may read.
  private struct Verbose: TaskHandler {
    struct Complaint: Error, CustomStringConvertible {
      var description: String {
        "DELETE https://user:hunter2@host/a?sig=abcdef\u{0}failed " + String(repeating: "x", count: 1 << 21)
      }
    }
    struct Parameters: Codable, Sendable { var isRight: Bool }
    struct Checkpoint: Codable, Sendable {
      init(from decoder: any Decoder) throws { throw Complaint() }
    }
    static let kind = "verbose"

    static func validate(_ parameters: Parameters) throws { if !parameters.isRight { throw Complaint() } }

    func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> NoOutput { NoOutput() }
  }

  @Test(
    "the error of a check of parameters or of a checkpoint is masked and can be stored, as that of a run",
    arguments: [(false, TaskFailure.Code.parametersInvalid), (true, .checkpointUnreadable)])
  func errorsOfChecks(hasRightParameters: Bool, code: TaskFailure.Code) async throws {
    var spec = TaskSpec(id: .random(), kind: TaskKind(rawValue: Verbose.kind), source: "")
    spec.parameters = Array(#"{"isRight":\#(hasRightParameters)}"#.utf8)
    let outcome = try await run(
      Verbose(), spec, from: Checkpoint(version: 1, payload: Array(#"{"checkpoint":1}"#.utf8)))
    guard case .failed(let failure) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(failure.code == code && failure.message.contains("host/a"))
    #expect(failure.message.utf8.count < 1200 && !failure.message.utf8.contains(0))
    for secret in ["hunter2", "abcdef"] { #expect(!failure.message.contains(secret)) }
  }

  @Test(
    "dates keep their milliseconds, and are read without them too",
    arguments: [
      (1_767_323_045.123, "2026-01-02T03:04:05.123Z"), (1_767_323_045, "2026-01-02T03:04:05.000Z"),
      (1_767_323_045.999_6, "2026-01-02T03:04:06.000Z"), (-0.123, "1969-12-31T23:59:59.877Z"),
    ])
  func dates(seconds: Double, text: String) throws {
    #expect(try JSONValue.encode([Date(timeIntervalSince1970: seconds)]) == Array("[\"\(text)\"]".utf8))
    let read = try JSONValue.decode([Date].self, from: Array("[\"\(text)\",\"2026-01-02T03:04:05Z\"]".utf8))
    #expect((read[0].timeIntervalSince1970 * 1000).rounded() == (seconds * 1000).rounded())
    #expect(read[1].timeIntervalSince1970 == 1_767_323_045)
  }

  private struct Listed: TaskDefinition {
    static let kind = "listed"

    static func validate(_ parameters: [Int]) throws {
      if parameters.isEmpty { throw InvalidTask("", "it is empty") }
      if parameters == [0] { throw InvalidTask("[0]", "it is 0") }
    }
  }

  private struct Absent: TaskDefinition {
    typealias Parameters = [String: Int]?
    static let kind = "absent"
  }

  private struct Files: TaskDefinition {
    struct Parameters: Codable, Sendable { var files: [String] }
    static let kind = "files"

    static func validate(_ parameters: Parameters) throws { throw InvalidTask("files", "there must be a file") }
  }

  @Test("what is wrong with parameters is told with its place, to producers and to workers") func places() {
    func expect(_ place: String, _ body: () throws -> Void) {
      let error = #expect(throws: InvalidTask.self) { try body() }
      #expect(error?.field == place)
    }
    func spec(_ parameters: String) -> TaskSpec {
      var spec = TaskSpec(id: .random(), kind: .noop, source: "")
      spec.parameters = Array(parameters.utf8)
      return spec
    }
    expect("parameters.files") { _ = try TaskSpec(Files.self, .init(files: [])) }
    expect("parameters.files") { _ = try spec(#"{"files":[]}"#).parameters(of: Files.self) }
    expect("parameters.files[1]") { _ = try spec(#"{"files":["a",2]}"#).parameters(of: Files.self) }
    expect("parameters") { _ = try TaskSpec(Listed.self, []) }
    expect("parameters[0]") { _ = try TaskSpec(Listed.self, [0]) }
    expect("parameters") { _ = try TaskSpec(Absent.self, nil) }
    expect("parameters[1]") { _ = try spec(#"[1,"a"]"#).parameters(of: Listed.self) }
  }

  private struct Numbers: TaskHandler {
    struct Parameters: Codable, Sendable {
      var count: Int?
      var level: UInt8?
      var ratio: Float?
      var at: Date?
    }
    static let kind = "numbers"

    func run(_ parameters: Parameters, context: TaskContext<NoCheckpoint>) async throws -> NoOutput { NoOutput() }
  }

  @Test(
    "a number that does not fit its type is not called invalid JSON",
    arguments: [
      (#"{"count":5.5}"#, "a number does not fit its type"), (#"{"level":300}"#, "a number does not fit its type"),
      (#"{"ratio":1e300}"#, "a number does not fit its type"), (#"{"count":"5"}"#, "count: expected"),
      (#"{"at":"today"}"#, "ISO8601"),
    ])
  func numbers(parameters: String, complaint: String) async throws {
    var spec = TaskSpec(id: .random(), kind: TaskKind(rawValue: Numbers.kind), source: "")
    spec.parameters = Array(parameters.utf8)
    guard case .failed(let failure) = try await run(Numbers(), spec, from: nil) else {
      Issue.record("it ran")
      return
    }
    #expect(failure.code == .parametersInvalid && failure.message.contains(complaint), "\(failure.message)")
  }

  @Test("an error that a middleware catches still decides what happens to the task")
  func caughtErrors() async throws {
    let catching: TaskMiddleware = { _, next in
      do { try await next() } catch {}
    }
    func outcome(_ error: any Error, stop: StopReason? = nil) async throws -> RunOutcome {
      let handler = Scripted { context -> Int in
        if let stop { context.run.ledger.tellToStop(stop) }
        throw error
      }
      return try await run(handler, middleware: [catching, catching])
    }
    let busy = TaskFailure(code: .init(rawValue: "busy"), message: "later", class: .retry)
    #expect(try await outcome(TaskError.retry("later", code: "busy")) == .failed(busy))
    #expect(try await outcome(CancellationError(), stop: .drain) == .stopped)
    #expect(try await outcome(TaskError.retry("later", code: "busy"), stop: .intent(.pause)) == .stopped)
    let handler = Scripted { _ in 7 }
    #expect(
      try await run(handler, middleware: [catching]) == .succeeded(sha256: nil, bytes: 0, output: Array("7".utf8)))
  }

  @Test("a middleware that does not call its next fails the task, but not a run that is told to stop")
  func missingCalls() async throws {
    func outcome(stop: StopReason? = nil) async throws -> RunOutcome {
      let ledger = Lock<RunLedger?>(nil)
      let idle: TaskMiddleware = { _, _ in
        if let stop { ledger.withLock { $0?.tellToStop(stop) } }
      }
      return try await run(Scripted { _ in 7 }, middleware: [idle]) { known in ledger.withLock { $0 = known } }
    }
    guard case .failed(let failure) = try await outcome() else {
      Issue.record("it did not fail")
      return
    }
    #expect(failure.code.rawValue == "middleware_error" && failure.class == .fail)
    #expect(try await outcome(stop: .drain) == .stopped)
  }

  @Test(
    "of a run that is told to stop, or loses its task, while it waits for a thread or a middleware, nothing begins",
    arguments: [StopReason.intent(.cancel), .timedOut, nil])
  func stoppedBeforeItBegins(reason: StopReason?) async throws {
    let (begun, ledger) = (Lock<[String]>([]), Lock<RunLedger?>(nil))
    let handler = Scripted { _ in
      begun.withLock { $0.append("handler") }
      return 7
    }
    let layer: TaskMiddleware = { _, next in
      begun.withLock { $0.append("middleware") }
      ledger.withLock { $0.map(stop) }
      try? await next()
    }
    @Sendable func stop(_ ledger: RunLedger) {
      if let reason { ledger.tellToStop(reason) } else { ledger.disown() }
    }
    #expect(try await run(handler, before: stop) == .stopped)
    #expect(try await run(handler, middleware: [layer, layer], before: stop) == .stopped)
    #expect(begun.withLock { $0 } == [])
    let outcome = try await run(handler, middleware: [layer, layer]) { known in ledger.withLock { $0 = known } }
    #expect(outcome == .stopped && begun.withLock { $0 } == ["middleware"])
  }

  @Test("the scratch directory is removed only when the end of the run is written, which does not wait for it")
  func scratchOfEndedRun() async throws {
    let path = Lock("")
    let handler = Scripted { context -> Int in
      let scratch = try await context.scratch()
      path.withLock { $0 = scratch }
      return 1
    }
    let outcome = try await run(
      handler,
      then: { ledger in
        #expect(access(path.withLock { $0 }, F_OK) == 0)
        await ledger.finish(hasSucceeded: true)
        #expect(access(path.withLock { $0 }, F_OK) != 0)
      })
    #expect(outcome == .succeeded(sha256: nil, bytes: 0, output: Array("1".utf8)))
  }

  @Test("without a storage, the scratch directory of a crashed run is removed by the task's next run")
  func scratchOfCrashedRun() async throws {
    let (spec, other) = (try TaskSpec(Leaking.self, .init()), try TaskSpec(Leaking.self, .init()))
    func scratch(_ spec: TaskSpec, _ epoch: Int) -> ScratchDirectory {
      ScratchDirectory(Claim(spec: spec, epoch: epoch, attempt: 1, checkpoint: nil), roots: nil)
    }
    let crashed = try await scratch(spec, 1).path()
    #expect(mkdir("\(crashed)/deep", 0o755) == 0)
    let (stranger, newer) = (scratch(other, 1), scratch(spec, 3))
    let kept = [try await stranger.path(), try await newer.path()]
    #expect(access(crashed, F_OK) != 0)
    // One that lost its task meanwhile removes nothing of its successor.
    let late = scratch(spec, 2)
    _ = try await late.path()
    #expect(kept.allSatisfy { access($0, F_OK) == 0 })
    for one in [stranger, newer, late] { await one.remove() }
    #expect(kept.allSatisfy { access($0, F_OK) != 0 })
  }

  @Test("without a storage of its task, the scratch directory is on the first root that can be used")
  func scratchBesideMissingRoot() async throws {
    let directory = try TemporaryDirectory()
    let storage = Storage(roots: ["default": "\(directory.path)/default"])
    try storage.initialise()
    let loop = EventLoop(name: "scratch-test")
    let roots = StorageRoots(
      Storage(roots: ["archive": "\(directory.path)/not-mounted", "default": "\(directory.path)/default"]), loop: loop,
      settings: .init(permits: { _ in false }, credentials: CredentialFile(path: "")))
    let claim = Claim(spec: try TaskSpec(Leaking.self, .init()), epoch: 1, attempt: 1, checkpoint: nil)
    let scratch = ScratchDirectory(claim, roots: roots)
    let path = try? await scratch.path()
    #expect(scratch.root?.name == "default")
    await scratch.remove()
    await roots.close()
    loop.shutdown()
    #expect(path?.hasPrefix("\(directory.path)/default/") == true)
  }

  @Test("what a handler left running gets no scratch directory after the end of the run")
  func scratchAfterEnd() async throws {
    let kept = Lock<TaskContext<Scripted<Int>.Checkpoint>?>(nil)
    let handler = Scripted { context -> Int in
      kept.withLock { $0 = context }
      return 1
    }
    let outcome = try await run(
      handler,
      then: { ledger in
        // One that is asked for at the same time is removed, or not made.
        async let early = kept.withLock { $0 }?.scratch()
        await ledger.finish(hasSucceeded: true)
        if let path = try? await early { #expect(access(path, F_OK) != 0) }
        await #expect(throws: OwnershipLostError.self) { try await kept.withLock { $0 }?.scratch() }
      })
    #expect(outcome == .succeeded(sha256: nil, bytes: 0, output: Array("1".utf8)))
  }

  private func run(
    _ handler: Scripted<Int>, middleware: [TaskMiddleware] = [], from checkpoint: Checkpoint? = nil,
    before: (RunLedger) -> Void = { _ in }, then: (RunLedger) async -> Void = { _ in }
  ) async throws -> RunOutcome {
    try await run(
      handler, TaskSpec(Scripted<Int>.self, .init()), middleware: middleware, from: checkpoint, before: before,
      then: then)
  }

  private func run(
    _ handler: some TaskHandler, _ spec: TaskSpec, middleware: [TaskMiddleware] = [], from checkpoint: Checkpoint?,
    before: (RunLedger) -> Void = { _ in }, then: (RunLedger) async -> Void = { _ in }
  ) async throws -> RunOutcome {
    let loop = EventLoop(name: "adapter-test")
    let log = Logger(level: .error)
    let claim = Claim(spec: spec, epoch: 2, attempt: 1, checkpoint: checkpoint)
    let ledger = RunLedger(
      claim: claim,
      lease: Lease(worker: WorkerID(rawValue: 1), boot: .random(), fence: Fence(until: .now + .seconds(3600))),
      store: StoreBatcher(store: MemoryStore(), loop: loop, log: log))
    before(ledger)
    let outcome = await HandlerAdapter(handler, middleware: middleware, roots: nil, log: log).run(claim, ledger: ledger)
    await then(ledger)
    await Task.detached { loop.shutdown() }.value
    return outcome
  }
}
