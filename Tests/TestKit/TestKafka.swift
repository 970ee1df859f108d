import Glibc
import LocalFleet
import ReelhaulKafka
import ReelhaulSystem
import Testing

/// A real Apache Kafka for tests: one node per test process, started on first use.
package enum TestKafka {
  /// The distribution from `KAFKA_HOME`, or else from `../shared/kafka` beside the package.
  package static let home: String? = {
    if let home = environment("KAFKA_HOME") { return home }
    let package = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let candidates = ["/\(package)/../shared/kafka", "/\(package)/../../shared/kafka"]
    return candidates.first { access("\($0)/bin/kafka-server-start.sh", X_OK) == 0 }
  }()

  /// For `.enabled(if:)`: whether there is a Kafka. Prints once why not.
  package static let isAvailable: Bool = {
    guard home == nil else { return true }
    let line = "skipped: tests with Apache Kafka, because KAFKA_HOME is not set and ../shared/kafka is not there\n"
    _ = line.withCString { write(2, $0, strlen($0)) }
    return false
  }()

  private static let directory = Result { try TemporaryDirectory(prefix: "reelhaul-kafka") }
  private static let sharedPID = Lock<Int32?>(nil)
  private static let node = Task {
    let node = try await start(in: directory.get().path)
    let pid = await node.pid
    sharedPID.withLock { $0 = pid }
    atexit { TestKafka.removeShared() }
    return node
  }

  /// Ends the shared node with the test process, and removes its data.
  private static func removeShared() {
    guard let pid = sharedPID.withLock({ $0 }), let directory = try? directory.get() else { return }
    kill(pid, SIGKILL)
    // Another thread reaps the process. Until then its files must stay.
    for _ in 0..<200 where kill(pid, 0) == 0 { usleep(5000) }
    removeTree(directory.path)
  }

  /// The node that all tests share. Each test must use its own names for topics and groups.
  package static func shared() async throws -> ApacheKafka {
    try await node.value
  }

  /// A node for one test, which must stop it.
  package static func start(
    in directory: String, ports: (client: Int, controller: Int)? = nil, properties: [String: String] = [:]
  ) async throws -> ApacheKafka {
    guard let home else { throw TestKafkaError() }
    _ = OrphanWatch.isKept
    let ports = try ports ?? (LoopbackPort.free(), LoopbackPort.free())
    return try await ApacheKafka(home: home, directory: directory, ports: ports, properties: properties)
  }

  /// Deletes topics, as an operator would. Returns once they are gone.
  package static func delete(_ topics: [String], at bootstrap: String) async throws {
    // The command takes a regular expression.
    try await change(topics.joined(separator: "|"), ["--delete"], at: bootstrap) { present in
      topics.allSatisfy { present[$0] == nil }
    }
  }

  /// Adds partitions to a topic, as an operator would, until it has so many.
  package static func widen(_ topic: String, to partitions: Int, at bootstrap: String) async throws {
    try await change(topic, ["--alter", "--partitions", "\(partitions)"], at: bootstrap) { $0[topic] == partitions }
  }

  /// Runs Kafka's own command for topics, and waits until it shows in the numbers of their partitions.
  private static func change(
    _ topics: String, _ arguments: [String], at bootstrap: String, until isDone: @Sendable ([String: Int]) -> Bool
  ) async throws {
    guard let home else { throw TestKafkaError() }
    let command = ["--bootstrap-server", bootstrap, "--topic", topics] + arguments
    let status = await (try ChildProcess("\(home)/bin/kafka-topics.sh", command)).wait()
    guard status == .exited(0) else { throw SystemError(errno: EINVAL, operation: "\(arguments[0]) \(topics)") }
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: bootstrap))
    try await eventually("\(topics) are changed") { isDone(try await admin.metadata().topics) }
    await admin.close()
  }

  private static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }
}

private struct TestKafkaError: Error, CustomStringConvertible {
  let description = "KAFKA_HOME is not set"
}
