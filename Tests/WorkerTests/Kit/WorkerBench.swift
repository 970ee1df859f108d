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

/// One worker with the parts of a test: a store in memory, and lists instead of topics.
final class WorkerBench: Sendable {
  let loop = EventLoop(name: "worker")
  let store: TestStore
  let commands = ListSource()
  let signals = ListSource()
  let sink = RecordingSink()
  let handler = ScriptedHandler()
  let topics = TopicPlan()
  let storage: Storage
  let worker: Worker
  /// How often the worker gave up its connections to the store.
  let reconnects = Lock(0)
  private let directory: TemporaryDirectory

  init(
    store: TestStore = TestStore(), hooks: (any HookSending)? = nil, log: Logger = quietLog,
    _ adjust: (inout WorkerSettings) -> Void = { _ in }
  ) throws {
    self.store = store
    directory = try TemporaryDirectory()
    storage = Storage(roots: ["default": "\(directory.path)/default"])
    try storage.initialise()
    var settings = WorkerSettings()
    settings.leaseSeconds = 3600
    settings.drainLimit = .seconds(120)
    settings.sweepInterval = .milliseconds(50)
    adjust(&settings)
    worker = Worker(
      loop: loop, settings: settings,
      parts: WorkerParts(
        store: store, commands: commands, signals: signals, messages: sink, rounds: sink, progress: sink,
        handlers: try HandlerTable([handler, NoopHandler()]), storage: storage, hooks: hooks,
        reconnect: { [reconnects] in reconnects.withLock { $0 += 1 } }, flush: { [sink] _ in sink.close() }),
      log: log)
  }

  /// Runs `body` while the worker runs, then drains the worker. Returns the exit code.
  @discardableResult
  func run(_ body: () async throws -> Void) async throws -> Int32 {
    await worker.start()
    do {
      try await body()
    } catch {
      await worker.requestStop()
      await worker.requestStop()
      _ = await worker.finished()
      await end()
      throw error
    }
    await worker.requestStop()
    let code = await worker.finished()
    await end()
    return code
  }

  /// Runs the worker until it ends by itself; returns the exit code.
  func runToEnd() async -> Int32 {
    await worker.start()
    let code = await worker.finished()
    await end()
    return code
  }

  private func end() async {
    await Task.detached { [loop] in loop.shutdown() }.value
  }

  func submit(_ specs: [TaskSpec]) {
    commands.send(specs.map { CommandJSON.encode(.submit($0)) })
  }

  func control(_ action: ControlAction, _ id: UniqueID) {
    commands.send([CommandJSON.encode(.control(.init(id: .random(), taskID: id, action: action)))])
  }

  func state(_ id: UniqueID) async throws -> TaskState? { try await store.task(id)?.state }
}

func download() -> TaskSpec {
  TaskSpec(
    id: .random(), kind: .download, source: "http://127.0.0.1/a.mp4", destination: "storage://default/a.mp4")
}

func noop() -> TaskSpec {
  TaskSpec(id: .random(), kind: .noop, source: "noop:", destination: nil)
}
