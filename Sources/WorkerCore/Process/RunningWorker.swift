import Glibc
import HTTPServer
import OTLP
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TransferEngine

/// A worker with its real parts: PostgreSQL, Kafka, the transfer engine and their loops.
package final class RunningWorker: Sendable {
  private let loop: EventLoop
  private let pool: PostgresPool
  private let leases: PostgresPool
  private let roots: StorageRoots
  private let hooks: HookSender
  private let telemetry: OTLPExporter?
  private let worker: Worker
  /// Serves the metrics, if it is wanted.
  private let server: HTTPServer?
  private let commands: any CommandSource
  /// Ends the worker when a Kafka client is lost for good, because only a new process has new clients.
  private let fatal: AsyncStream<Void>
  private let isLost = Flag()

  /// The connections to PostgreSQL: claims, settlements, ingest and the relay may each hold one. The lease has its
  /// own.
  private static let connections = 4

  /// Makes the parts and starts them, without waiting.
  ///
  /// Throws ``KafkaError`` or ``PostgresError`` if the configuration is refused, ``DuplicateKind``, and ``SystemError`` if
  /// the metrics cannot be served at their port.
  package static func start(
    _ configuration: WorkerConfiguration, kinds: WorkerKinds = WorkerKinds(), log: Logger
  ) async throws -> RunningWorker {
    let running = try RunningWorker(configuration, kinds: kinds, log: log)
    if let server = running.server {
      do {
        _ = try await server.start()
      } catch {
        await running.close()
        throw error
      }
    }
    await running.worker.start()
    await running.telemetry?.start { [worker = running.worker] in await worker.metricsSnapshot() }
    running.loop.task { [fatal = running.fatal, isLost = running.isLost, worker = running.worker] in
      for await _ in fatal {
        isLost.set()
        return await worker.requestEnd()
      }
    }
    return running
  }

  private init(_ configuration: WorkerConfiguration, kinds: WorkerKinds, log: Logger) throws {
    let (postgres, renewing) = try Self.databases(configuration)
    let policy = NetworkPolicy(allowed: configuration.allowedNetworks)
    let credentials = configuration.credentials.map { CredentialFile(path: $0) }
    let loop = EventLoop(name: "control")
    let (fatal, lost) = AsyncStream.makeStream(of: Void.self)
    do {
      let storage = Storage(roots: configuration.storage, reserve: ReservePolicy(floor: configuration.minFree))
      if configuration.initialisesStorage { try storage.initialise() }
      pool = PostgresPool(
        loop: loop, configuration: postgres, size: Self.connections, onConnect: log.connections(to: postgres.target))
      leases = PostgresPool(loop: loop, configuration: renewing, size: 1)
      roots = StorageRoots(
        storage, loop: loop,
        settings: .init(
          permits: { policy.permits(sockaddr: $0) }, credentials: credentials, rate: configuration.rate,
          hostConnections: configuration.hostConnections, caFile: configuration.caFile,
          awsCredentials: configuration.awsCredentials))
      hooks = HookSender(
        permits: { policy.permits(sockaddr: $0) }, caFile: configuration.caFile, credentials: credentials,
        secret: configuration.hookSecret)
      telemetry = configuration.telemetry.map { OTLPExporter($0, service: "reelhaul-worker", log: log) }
      let handlers = try kinds.table(HandlerServices(roots: roots, log: log))
      let kafka = try KafkaParts(configuration, loop: loop, log: log, onFatal: { lost.yield() })
      let store = PostgresStore(pool: leases)
      let commands: any CommandSource =
        configuration.dealsCommands
        ? DealtCommandSource(kafka.consumer, topics: configuration.settings.topics, store: store, loop: loop)
        : KafkaCommandSource(kafka.consumer)
      self.commands = commands
      worker = Worker(
        loop: loop, settings: configuration.settings,
        parts: WorkerParts(
          store: PostgresStore(pool: pool), leases: store,
          commands: commands, signals: kafka.signals, messages: kafka.messages,
          rounds: kafka.rounds, progress: kafka.progress,
          handlers: handlers, storage: storage, transfers: roots, hooks: hooks,
          tracer: telemetry?.tracer,
          reconnect: { [pool] in await pool.reconnect() },
          flush: { limit in
            commands.leave()
            await kafka.close(within: limit)
            lost.finish()
          }),
        log: log)
    } catch {
      loop.shutdown()
      throw error
    }
    server = Self.server(for: configuration, worker: worker, loop: loop)
    self.loop = loop
    self.fatal = fatal
  }

  /// For the pool, and for the lease alone.
  private static func databases(
    _ configuration: WorkerConfiguration
  ) throws(PostgresError) -> (PostgresConfiguration, renewing: PostgresConfiguration) {
    var postgres = try PostgresConfiguration(url: configuration.postgres)
    postgres.applicationName = "reelhaul-worker"
    // A dead connection that gives no error must be replaced before the fence closes.
    var renewing = postgres
    renewing.acknowledgement = .seconds(configuration.settings.leaseSeconds) / 3
    // Nor must it wait for a server that takes bytes and does not answer: what comes after the fence is of no use.
    renewing.statementTimeout = .seconds(configuration.settings.leaseSeconds) * 2 / 3
    return (postgres, renewing)
  }

  private static func server(
    for configuration: WorkerConfiguration, worker: Worker, loop: EventLoop
  ) -> HTTPServer? {
    configuration.metrics.map { place in
      var settings = HTTPServer.Settings(port: place.port)
      settings.host = place.address
      settings.connections = 100
      return HTTPServer(loop: loop, settings: settings, handler: MetricsEndpoint(worker: worker))
    }
  }

  /// Begins the drain. A second call ends it at once.
  package func requestStop() async {
    await worker.requestStop()
  }

  /// Begins the drain when one of the signals arrives.
  func stopOn(_ signals: [Int32]) async -> [LoopSignal] {
    let made = loop.task { [loop, worker] in
      signals.map { signal in
        LoopSignal(loop: loop, signal: signal) { loop.task { await worker.requestStop() } }
      }
    }
    return (try? await made.value) ?? []
  }

  /// Waits for the end of the drain and returns the exit code: 0 only if the drain was requested and complete.
  package func finished() async -> Int32 {
    let code = await worker.finished()
    return isLost.isSet ? DrainMachine.unfinished : code
  }

  /// Ends the process 2 s after the drain, from the control loop: handlers, or what they have left behind, may block all
  /// threads of the global executor, and then no caller learns of the drain's end. A caller that does cancels this.
  func exitUnlessCanceled(_ log: Logger) -> Task<Void, any Error> {
    loop.task { [self] in
      let code = await finished()
      try await loop.sleep(for: .seconds(2))
      log.error("handlers block all threads: the process ends without them", ["code": .integer(Int(code))])
      log.close()
      _exit(code)
    }
  }

  /// Whether calls hang that ``close(_:)`` would wait for.
  package var hasHangingCalls: Bool {
    get async { await worker.hasHangingCalls }
  }

  /// Ends the remaining parts, after ``finished()``.
  package func close(_ signals: [LoopSignal] = []) async {
    _ = try? await loop.task { for signal in signals { signal.close() } }.value
    await server?.stop(within: .milliseconds(500))
    commands.leave()
    await roots.close()
    await hooks.close()
    await telemetry?.close()
    await pool.close()
    await leases.close()
    await Task.detached { [loop] in loop.shutdown() }.value
  }
}

extension Logger {
  /// Reports an unreachable database at once, because waiting callers report it only when their time is over.
  fileprivate func connections(to target: String) -> @Sendable (PostgresError?) -> Void {
    let outage = Lock(Outage())
    return { error in
      if let error {
        self.log(
          outage.withLock { $0.failed(error) }, "PostgreSQL cannot be reached; the worker keeps trying",
          ["server": .text(target), "error": .text("\(error)")])
      } else if outage.withLock({ $0.recovered() }) {
        self.notice("PostgreSQL is reached again", ["server": .text(target)])
      }
    }
  }
}
