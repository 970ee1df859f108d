import Glibc
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import Testing

/// A fleet of real worker processes for a test: a new database, a broker, an origin that can misbehave, a storage
/// root, and the built `reelhaul` binary.
///
///     let fleet = try await TestFleet.start(workers: 2)
///     let task = try await fleet.download("/a.mp4")
///     _ = try await fleet.wait(for: task, .succeeded)
///     await fleet.stop()
package final class TestFleet: Sendable {
  package enum Broker: Sendable {
    /// The development broker, in this process.
    case development
    /// A running broker with these bootstrap servers. The topics are this test's own.
    case running(String)
  }

  package let origin: OriginServer
  package let store: PostgresStore
  package let client: ReelhaulClient
  package let loop: EventLoop
  package let prefix: String
  package let bootstrap: String
  package let environment: [String: String]
  private let directory: TemporaryDirectory
  private let broker: DevelopmentBroker?
  /// For checks that only the database can answer.
  package let pool: PostgresPool
  private let processes = Lock<[ChildProcess]>([])

  private init(
    origin: OriginServer, postgres: String, bootstrap: String, broker: DevelopmentBroker?, leaseSeconds: Int,
    prefix: String, environment extra: [String: String]
  ) throws {
    directory = try TemporaryDirectory(prefix: "reelhaul-fleet")
    self.origin = origin
    self.broker = broker
    self.bootstrap = bootstrap
    self.prefix = prefix
    mkdir("\(directory.path)/storage", 0o755)
    environment = [
      "REELHAUL_KAFKA": bootstrap, "REELHAUL_POSTGRES": postgres, "REELHAUL_TOPIC_PREFIX": prefix,
      "REELHAUL_STORAGE": "default=\(directory.path)/storage", "REELHAUL_ALLOW_NETWORKS": "127.0.0.0/8",
      "REELHAUL_LEASE_SECONDS": String(leaseSeconds), "REELHAUL_DRAIN_SECONDS": "120", "REELHAUL_LOG_LEVEL": "info",
      // No proxy listens there, so a transfer that used a proxy of the environment would fail.
      "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9",
    ].merging(extra) { _, new in new }
    loop = EventLoop(name: "test-fleet")
    pool = PostgresPool(loop: loop, configuration: try .patient(url: postgres), size: 2)
    store = PostgresStore(pool: pool)
    client = try ReelhaulClient.connect(bootstrap: bootstrap, topicPrefix: prefix)
  }

  /// Prepares the database and the topics, and starts the workers. Use a short lease only if the test waits for its
  /// end: on a busy machine a living worker could lose its tasks.
  package static func start(
    workers: Int, broker kind: Broker = .development, postgres: String? = nil, leaseSeconds: Int = 15,
    environment: [String: String] = [:]
  ) async throws -> TestFleet {
    let url: String
    if let postgres { url = postgres } else { url = try await TestPostgres.shared.database() }
    let prefix = "test-\(UInt32.random(in: 0 ... .max))."
    let broker: DevelopmentBroker?
    let bootstrap: String
    switch kind {
    case .development:
      let started = try DevelopmentBroker(topics: TopicPlan(prefix: prefix).topics)
      broker = started
      bootstrap = started.bootstrap
    case .running(let servers):
      broker = nil
      bootstrap = servers
    }
    let fleet = try TestFleet(
      origin: try OriginServer(), postgres: url, bootstrap: bootstrap, broker: broker, leaseSeconds: leaseSeconds,
      prefix: prefix, environment: environment)
    let migrated = try await fleet.run(["migrate"])
    guard migrated.status == .exited(0) else { throw TestFleetError("migrate: \(migrated.output)") }
    for _ in 0..<workers { try fleet.startWorker() }
    return fleet
  }

  /// A failed test has not stopped its fleet, which must not disturb the next test.
  deinit {
    for process in processes.withLock({ $0 }) {
      process.kill(SIGKILL)
      _ = process.waitBlocking()
    }
  }

  /// Ends every process and removes what the fleet made.
  package func stop() async {
    let all = processes.withLock { $0 }
    for process in all { process.kill(SIGKILL) }
    for process in all { _ = await process.wait() }
    await client.close(within: .seconds(1))
    await pool.close()
    origin.close()
    await broker?.close()
    let loop = loop
    await Task.detached { loop.shutdown() }.value
  }

  // MARK: Processes

  /// The built program, beside the test bundle.
  package static var binary: String { built("reelhaul") }

  /// A built program, beside the test bundle.
  package static func built(_ name: String) -> String {
    let path = CommandLine.arguments[0]
    let folder = path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    return "\(folder)/\(name)"
  }

  /// A worker with its own role in the database, optionally behind a proxy.
  package func startWorker(named role: String, through proxy: CuttingProxy? = nil) async throws -> ChildProcess {
    try await TestPostgres.shared.asSuperuser {
      try await $0.script(
        "do $$ begin create role \(role) login superuser; exception when duplicate_object then null; end $$")
    }
    // postgres://ROLE@127.0.0.1:PORT/DATABASE
    let url = environment["REELHAUL_POSTGRES"] ?? ""
    let port = proxy.map { String($0.port) } ?? url.split(separator: ":")[2].prefix { $0 != "/" }.description
    let database = url.split(separator: "/").last ?? ""
    return try startWorker(["REELHAUL_POSTGRES": "postgres://\(role)@127.0.0.1:\(port)/\(database)"])
  }

  /// - Parameter program: a worker of a test's own, with handlers.
  @discardableResult
  package func startWorker(_ environment: [String: String] = [:], program: String? = nil) throws -> ChildProcess {
    var options = ChildProcess.Options()
    options.environment = self.environment.merging(environment) { _, new in new }
    let number = processes.withLock { $0.count }
    options.stdout = "\(directory.path)/worker-\(number).log"
    options.stderr = options.stdout
    // SIGKILL, because a stopped process (SIGSTOP) would not act on another signal.
    options.signalOnParentDeath = SIGKILL
    let process = try ChildProcess(program ?? Self.binary, program == nil ? ["worker"] : [], options)
    processes.withLock { $0.append(process) }
    return process
  }

  /// The workers that have not ended.
  package var running: [ChildProcess] {
    processes.withLock { $0.filter { $0.status == nil } }
  }

  /// Runs one command of the program until it ends.
  package func run(
    _ arguments: [String], environment extra: [String: String] = [:]
  ) async throws -> (status: ReelhaulSystem.ExitStatus, output: String) {
    let path = "\(directory.path)/run-\(UInt32.random(in: 0 ... .max))"
    var options = ChildProcess.Options()
    options.environment = environment.merging(extra) { $1 }
    options.stdout = path
    options.stderr = path
    let status = await (try ChildProcess(Self.binary, arguments, options)).wait()
    return (status, try String(decoding: Self.contents(path), as: UTF8.self))
  }

  /// The logs of the workers.
  package func logs() -> String {
    (0..<processes.withLock { $0.count }).map { number in
      let path = "\(directory.path)/worker-\(number).log"
      return "--- worker \(number)\n" + String(decoding: (try? Self.contents(path)) ?? [], as: UTF8.self)
    }.joined(separator: "\n")
  }

  /// The process that runs `task` now.
  package func owner(of task: UniqueID) async throws -> ChildProcess? {
    guard let worker = try await store.task(task)?.worker else { return nil }
    guard let pid = try await store.workers().first(where: { $0.id == worker })?.pid else { return nil }
    return processes.withLock { $0.first { $0.pid == pid && $0.status == nil } }
  }

  /// Waits for the process that runs `task`. There may be none for a moment, if the machine was so busy that the lease
  /// ended.
  package func waitForOwner(of task: UniqueID) async throws -> ChildProcess {
    var found: ChildProcess?
    try await eventually("task \(task) has an owner") {
      found = try await owner(of: task)
      return found != nil
    }
    guard let process = found else { throw TestFleetError("task \(task) has no owner") }
    return process
  }

  /// Ends the lease of a worker that was killed, as time would. A test that does not measure this time can thus have a
  /// lease that a living worker keeps on a busy machine.
  package func endLease(of killed: ChildProcess) async throws {
    _ = try await pool.query(
      PostgresStatement("update worker set lease_until = now() where pid = \(killed.pid)", writes: true))
  }

  /// Polls until `condition` holds, and ignores errors meanwhile. Fails with the workers' logs after `limit`.
  package func eventually(
    _ what: String, within limit: Duration = .seconds(300), sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
  ) async throws {
    try await TestKit.eventually(
      "\(what)\n\(logs())", within: limit, every: .milliseconds(50), sourceLocation: sourceLocation
    ) {
      await (try? condition()) == true
    }
  }

  // MARK: Tasks

  /// Submits a download of the origin's `path` to the same name in the default storage.
  package func download(
    _ path: String, id: UniqueID = .make(), _ change: (inout TaskSpec) -> Void = { _ in }
  ) async throws -> UniqueID {
    var spec = TaskSpec(id: id, kind: .download, source: origin.url(path), destination: "storage://default\(path)")
    change(&spec)
    try await client.submit(spec)
    return id
  }

  /// Polls until the task meets `condition`. Throws with the workers' logs after `deadline`.
  @discardableResult
  package func wait(
    for task: UniqueID, within deadline: Duration = .seconds(300), _ what: String = "the condition",
    until condition: (TaskDocument) throws -> Bool
  ) async throws -> TaskDocument {
    let end = Clocks.boottime() + deadline.nanoseconds
    while true {
      let document = try? await store.task(task)
      if let document, try condition(document) { return document }
      guard Clocks.boottime() < end else {
        let seen =
          document.map { "\($0.state), \($0.bytesDone) bytes, error \($0.error?.code.rawValue ?? "none")" } ?? "absent"
        throw TestFleetError("task \(task) did not meet \(what) within \(deadline): it is \(seen)\n\(logs())")
      }
      try await loop.sleep(for: .milliseconds(20))
    }
  }

  @discardableResult
  package func wait(
    for task: UniqueID, _ state: TaskState, within deadline: Duration = .seconds(300)
  ) async throws -> TaskDocument {
    try await wait(for: task, within: deadline, "state \(state)") { document in
      if document.state != state, document.state.isFinal {
        throw TestFleetError("task \(task) is \(document.state): \(document.error?.message ?? "")\n\(logs())")
      }
      return document.state == state
    }
  }

  /// Waits until all these tasks have succeeded, with one query for all of them.
  package func waitForSuccess(of tasks: [UniqueID], sourceLocation: SourceLocation = #_sourceLocation) async throws {
    try await eventually("\(tasks.count) tasks have succeeded", sourceLocation: sourceLocation) {
      let states = try await store.states(of: tasks)
      return states.count == tasks.count && states.values.allSatisfy { $0 == .succeeded }
    }
  }

  /// A directory of this test alone.
  package var scratch: String { directory.path }

  /// The path of a file in the default storage.
  package func path(_ name: String) -> String { "\(directory.path)/storage\(name)" }

  package static func contents(_ path: String) throws -> [UInt8] {
    try FileDescriptor.open(path, O_RDONLY).contents()
  }
}

package struct TestFleetError: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) {
    self.description = description
  }
}
