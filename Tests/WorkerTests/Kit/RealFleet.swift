import ReelhaulKafka
import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// Workers with real parts: a new database, a development broker, an origin and a storage root.
final class RealFleet: Sendable {
  let broker: DevelopmentBroker
  let kafka: KafkaConfiguration
  let producer: KafkaProducer
  let origin: OriginServer
  let directory: TemporaryDirectory
  let store: PostgresStore
  let configuration: WorkerConfiguration
  private let pool: PostgresPool
  private let loop: EventLoop

  private init(database: String) async throws {
    let topics = TopicPlan(partitions: 4)
    broker = try DevelopmentBroker(topics: topics.topics)
    kafka = try KafkaConfiguration(bootstrap: broker.bootstrap)
    producer = try KafkaProducer(kafka)
    origin = try OriginServer()
    directory = try TemporaryDirectory()
    loop = EventLoop(name: "test")
    pool = PostgresPool(loop: loop, configuration: try .patient(url: database), size: 2)
    store = PostgresStore(pool: pool)
    var settings = WorkerSettings()
    settings.topics = topics
    settings.drainLimit = .seconds(120)
    var configuration = WorkerConfiguration(
      kafka: kafka, postgres: database, storage: ["default": directory.path],
      allowedNetworks: [try CIDR("127.0.0.0/8")],
      settings: settings)
    configuration.initialisesStorage = true
    self.configuration = configuration
    try await Schema.migrator(pool).apply()
  }

  static func run(_ body: (RealFleet) async throws -> Void) async throws {
    let fleet = try await RealFleet(database: TestPostgres.shared.database())
    do {
      try await body(fleet)
      await fleet.close()
    } catch {
      await fleet.close()
      throw error
    }
  }

  private func close() async {
    await producer.close()
    origin.close()
    await pool.close()
    await broker.close()
    await Task.detached { [loop] in loop.shutdown() }.value
  }

  /// Runs `body` while a worker runs, and then drains the worker.
  func withWorker(
    _ adjust: (inout WorkerConfiguration) -> Void = { _ in }, _ body: (RunningWorker) async throws -> Void
  ) async throws {
    var configuration = configuration
    adjust(&configuration)
    let worker = try await RunningWorker.start(configuration, log: quietLog)
    let result: Result<Void, any Error>
    do {
      try await body(worker)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await worker.requestStop()
    #expect(await worker.finished() == 0)
    await worker.close()
    try result.get()
  }

  func send(_ commands: Command...) async throws {
    try await producer.sendAll(
      commands.map { command in
        KafkaMessage(
          topic: configuration.settings.topics.commands, key: Array(command.taskID.description.utf8),
          value: CommandJSON.encode(command))
      })
  }

  /// Reads a topic from its beginning until it has `count` records that `accept` accepts.
  func read<Value>(_ count: Int, from topic: String, _ accept: (KafkaRecord) throws -> Value?) async throws -> [Value] {
    let reader = try await KafkaReader.open(kafka, topics: [topic], from: .beginning)
    var values: [Value] = []
    while values.count < count, let records = try await reader.next() {
      values += try records.compactMap(accept)
    }
    await reader.close()
    return values
  }
}
