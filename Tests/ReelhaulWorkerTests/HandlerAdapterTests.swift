import MemoryTaskStore
import ReelhaulSystem
import ReelhaulTelemetry
import ReelhaulTestKit
import TaskCore
import TaskStore
import TestKit
import Testing
import WorkerCore

@testable import ReelhaulWorker

@Suite struct HandlerAdapterTests {
  /// A later version of the worker, or of the handler, may have written it.
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

  private func run(_ handler: Scripted<Int>, from checkpoint: Checkpoint) async throws -> RunOutcome {
    try await run(handler, TaskSpec(Scripted<Int>.self, .init()), from: checkpoint)
  }

  private func run(_ handler: some TaskHandler, _ spec: TaskSpec, from checkpoint: Checkpoint?) async throws
    -> RunOutcome
  {
    let loop = EventLoop(name: "adapter-test")
    let log = Logger(level: .error)
    let claim = Claim(spec: spec, epoch: 2, attempt: 1, checkpoint: checkpoint)
    let ledger = RunLedger(
      claim: claim,
      lease: Lease(worker: WorkerID(rawValue: 1), boot: .random(), fence: Fence(until: .now + .seconds(3600))),
      store: StoreBatcher(store: MemoryStore(), loop: loop, log: log))
    let outcome = await HandlerAdapter(handler, roots: nil, log: log).run(claim, ledger: ledger)
    await Task.detached { loop.shutdown() }.value
    return outcome
  }
}
