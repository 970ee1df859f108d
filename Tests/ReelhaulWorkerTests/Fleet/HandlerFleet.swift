import Glibc
import ReelhaulClient
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import ReelhaulWorker
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// A real fleet whose workers have handlers: processes of `HandlerWorker`, or workers in this process.
final class HandlerFleet: Sendable {
  let tests: TestFleet
  var store: PostgresStore { tests.store }
  /// What the handlers of worker processes write to.
  var directory: String { tests.scratch }

  private init(leaseSeconds: Int) async throws {
    tests = try await TestFleet.start(workers: 0, leaseSeconds: leaseSeconds)
  }

  static func run(leaseSeconds: Int = 15, _ body: (HandlerFleet) async throws -> Void) async throws {
    let fleet = try await HandlerFleet(leaseSeconds: leaseSeconds)
    do {
      try await body(fleet)
      await fleet.tests.stop()
    } catch {
      await fleet.tests.stop()
      throw error
    }
  }

  // MARK: Tasks

  func submit(
    _ kind: String, _ parameters: String = "{}", _ change: (inout TaskSpec) -> Void = { _ in }
  ) async throws -> UniqueID {
    var spec = TaskSpec(id: .make(), kind: TaskKind(rawValue: kind), source: "", parameters: Array(parameters.utf8))
    change(&spec)
    try await tests.client.submit(spec)
    return spec.id
  }

  func control(_ action: ControlAction, _ task: UniqueID) async throws {
    _ = try await store.apply([.control(Command.Control(id: .make(), taskID: task, action: action))])
  }

  func kindsOfEvents(of task: UniqueID) async throws -> [TaskEvent.Kind] {
    var kinds: [Int: TaskEvent.Kind] = [:]
    for event in try await tests.events() where event.taskID == task {
      // A relay that was killed may have published an event that another one publishes again.
      let former = kinds.updateValue(event.kind, forKey: event.sequence)
      #expect(former == nil || former == event.kind)
    }
    return kinds.sorted { $0.key < $1.key }.map(\.value)
  }

  // MARK: Processes

  /// A worker process with the handlers of these kinds.
  @discardableResult
  func startWorker(_ kinds: String...) throws -> ChildProcess {
    try tests.startWorker(
      ["HANDLERS": kinds.joined(separator: ",")], program: TestFleet.built("HandlerWorker"))
  }

  /// The lines that handlers wrote so far.
  var journal: [String] {
    let bytes = (try? TestFleet.contents("\(directory)/journal")) ?? []
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// Lets handlers go on that wait for this mark.
  func mark(_ name: String) {
    close(open("\(directory)/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
  }

  // MARK: Workers in this process

  /// The log of the workers in this process.
  var log: String { (try? String(decoding: TestFleet.contents("\(directory)/log"), as: UTF8.self)) ?? "" }

  var configuration: WorkerConfiguration {
    get throws {
      var settings = WorkerSettings()
      settings.topics = TopicPlan(prefix: tests.prefix)
      settings.drainLimit = .seconds(120)
      return WorkerConfiguration(
        kafka: try KafkaConfiguration(bootstrap: tests.bootstrap),
        postgres: tests.environment["REELHAUL_POSTGRES"] ?? "", storage: ["default": tests.path("")],
        allowedNetworks: [try CIDR("127.0.0.0/8")], settings: settings)
    }
  }

  /// Runs `body` beside a worker with these handlers, then drains it.
  func withWorker(
    _ handlers: any TaskHandler..., adjust: (inout WorkerConfiguration) -> Void = { _ in },
    _ body: (RunningWorker) async throws -> Void
  ) async throws {
    var configuration = try configuration
    adjust(&configuration)
    let descriptor = open("\(directory)/log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    let log = Logger(descriptor: descriptor)
    let kinds = WorkerKinds(more: { services in handlers.map { adapter($0, services) } })
    let worker = try await RunningWorker.start(configuration, kinds: kinds, log: log)
    let result: Result<Void, any Error>
    do {
      try await body(worker)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await worker.requestStop()
    #expect(await worker.finished() == 0)
    // What hangs would be waited for.
    if await !worker.hasHangingCalls { await worker.close() }
    log.close()
    close(descriptor)
    try result.get()
  }
}

private func adapter(_ handler: some TaskHandler, _ services: HandlerServices) -> any KindHandler {
  HandlerAdapter(handler, roots: services.roots, log: services.log)
}

extension TaskDocument {
  var outputText: String? { output.map { String(decoding: $0, as: UTF8.self) } }
}
