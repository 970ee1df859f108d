import CommandLineKit
import Glibc
import LocalFleet
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore

/// A fleet of `reelhaul up` in a temporary directory, for one benchmark. Its processes are the same as a user's.
final class BenchFleet: Sendable {
  enum Broker: Hashable {
    case embedded
    case apacheKafka

    var name: String { self == .embedded ? "development broker" : "Apache Kafka" }
  }

  let directory: TemporaryDirectory
  let settings: [String: String]
  private let executable: String
  private let process: ChildProcess

  private init(
    directory: TemporaryDirectory, settings: [String: String], executable: String, process: ChildProcess
  ) {
    self.directory = directory
    self.settings = settings
    self.executable = executable
    self.process = process
  }

  static func start(
    _ bench: BenchContext, workers: Int, broker: Broker = .embedded, environment: [String: String] = [:]
  ) async throws -> BenchFleet {
    let directory = try TemporaryDirectory(prefix: "reelhaul-bench")
    // If this user is root, PostgreSQL runs as another user, and must be able to enter the directory.
    chmod(directory.path, 0o755)
    let data = "\(directory.path)/data"
    var options = ChildProcess.Options()
    options.environment = environment.merging(["REELHAUL_CONFIG": "", "REELHAUL_LOG_LEVEL": "warning"]) { $1 }
    options.stdout = "\(directory.path)/up.log"
    options.stderr = options.stdout
    var arguments = ["up", "--workers", String(workers), "--data-dir", data]
    if broker == .apacheKafka { arguments += ["--broker", "apache-kafka"] }
    let process = try ChildProcess(bench.executable, arguments, options)
    let file = "\(data)/reelhaul.env"
    while access(file, F_OK) != 0 {
      guard process.status == nil else {
        throw WorkError("the fleet did not start: \(try TextFile.read("\(directory.path)/up.log"))")
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    return BenchFleet(
      directory: directory, settings: try SettingsFile.parse(try TextFile.read(file)), executable: bench.executable,
      process: process)
  }

  /// Drains the fleet and waits for its end.
  func stop() async {
    process.kill(SIGTERM)
    _ = await process.wait()
  }

  /// Runs one command of the measured program against the fleet. Throws if its exit code is not 0.
  func run(_ arguments: [String], output: String = "/dev/null") async throws {
    try await BenchCommandLine.run(executable, arguments, environment: settings, output: output)
  }

  func kafka() throws -> KafkaConfiguration {
    guard let configuration = try KafkaConfiguration.fromEnvironment(settings.filter { !$0.value.isEmpty }) else {
      throw WorkError("the fleet has no Kafka")
    }
    return configuration
  }

  var topics: TopicPlan { TopicPlan(prefix: settings["REELHAUL_TOPIC_PREFIX"] ?? "reelhaul.") }

  func withStore<Result: Sendable>(_ body: @Sendable (any TaskStore) async throws -> Result) async throws -> Result {
    try await withPool { try await body(PostgresStore(pool: $0)) }
  }

  /// Waits until `count` tasks have succeeded in total and all events are published. Returns the time when this was
  /// seen, in nanoseconds of the clock since boot.
  @discardableResult
  func finished(_ count: Int) async throws -> Int64 {
    try await withPool { pool in
      while true {
        while try await pool.query(Self.isBusy).value({ try $0.bool() }) {
          try await Task.sleep(for: .milliseconds(10))
        }
        let end = Clocks.boottime()
        if try await PostgresStore(pool: pool).counts()[.succeeded] ?? 0 >= count { return end }
      }
    }
  }

  /// Reads only small tables. Counting all tasks would use a good part of a core and distort the measurement.
  private static let isBusy = PostgresStatement(
    "select exists (select from ready) or exists (select from run) or exists (select from outbox)")

  func withPool<Result: Sendable>(
    size: Int = 2, _ body: @Sendable (PostgresPool) async throws -> Result
  ) async throws -> Result {
    try await PostgresPool.with(PostgresConfiguration(url: settings["REELHAUL_POSTGRES"] ?? ""), size: size, body)
  }

  /// The process ids of the fleet's workers.
  func workers() async throws -> [Int32] {
    try await withStore { try await $0.workers().filter(\.isLive).map(\.pid) }
  }
}
