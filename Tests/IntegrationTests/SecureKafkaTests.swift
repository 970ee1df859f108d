import Glibc
import LocalFleet
import ReelhaulKafka
import ReelhaulSystem
import TestKit
import Testing

/// An Apache Kafka that requires TLS and a password, reached through properties from the environment.
@Suite(.enabled(if: TestKafka.isAvailable), .timeLimit(.minutes(10)))
struct SecureKafkaTests {
  private static let password = "correct horse"

  /// A node with a listener for TLS and a listener for TLS with SASL, and their certificate.
  private struct Node {
    let kafka: ApacheKafka
    let certificate: String
    let tls: String
    let sasl: String
  }

  private func startNode(in directory: String) async throws -> Node {
    let keys = "\(directory)/keys.p12"
    let certificate = "\(directory)/certificate.pem"
    try await keytool([
      "-genkeypair", "-alias", "kafka", "-keyalg", "RSA", "-validity", "2", "-dname", "CN=localhost", "-ext",
      "SAN=ip:127.0.0.1", "-keystore", keys, "-storetype", "PKCS12", "-storepass", "changeit",
    ])
    try await keytool([
      "-exportcert", "-rfc", "-alias", "kafka", "-keystore", keys, "-storepass", "changeit", "-file", certificate,
    ])
    let ports = try (0..<4).map { _ in try LoopbackPort.free() }
    let names = ["PLAINTEXT", "CONTROLLER", "SSL", "SASL_SSL"]
    let listeners = zip(names, ports).map { "\($0)://127.0.0.1:\($1)" }
    let kafka = try await ApacheKafka(
      home: try #require(TestKafka.home), directory: "\(directory)/kafka", ports: (ports[0], ports[1]),
      properties: [
        "listeners": listeners.joined(separator: ","),
        "advertised.listeners": [listeners[0], listeners[2], listeners[3]].joined(separator: ","),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
        "ssl.keystore.location": keys,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": "changeit",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config":
          "org.apache.kafka.common.security.plain.PlainLoginModule required user_fleet=\"\(Self.password)\";",
      ])
    return Node(
      kafka: kafka, certificate: certificate, tls: "127.0.0.1:\(ports[2])", sasl: "127.0.0.1:\(ports[3])")
  }

  private func keytool(_ arguments: [String]) async throws {
    var options = ChildProcess.Options()
    options.stdout = "/dev/null"
    options.stderr = "/dev/null"
    #expect(await (try ChildProcess("keytool", arguments, options)).wait() == .exited(0))
  }

  /// The settings of a user of the SASL listener.
  private func settings(_ node: Node) async throws -> [String: String] {
    [
      "REELHAUL_CONFIG": "", "REELHAUL_TOPIC_PREFIX": "secure.",
      "REELHAUL_POSTGRES": try await TestPostgres.shared.database(),
      "REELHAUL_KAFKA": node.sasl,
      "REELHAUL_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
      "REELHAUL_KAFKA_SSL_CA_LOCATION": node.certificate,
      "REELHAUL_KAFKA_SASL_MECHANISM": "PLAIN",
      "REELHAUL_KAFKA_SASL_USERNAME": "fleet",
      "REELHAUL_KAFKA_SASL_PASSWORD": Self.password,
    ]
  }

  private typealias Result = (status: ReelhaulSystem.ExitStatus, output: String)

  private func run(
    _ arguments: [String], _ settings: [String: String], in directory: String
  ) async throws -> Result {
    var options = ChildProcess.Options()
    options.environment = settings
    options.stdout = "\(directory)/out-\(UInt32.random(in: 0 ... .max))"
    options.stderr = options.stdout
    let status = await (try ChildProcess(TestFleet.binary, arguments, options)).wait()
    return (status, String(decoding: try TestFleet.contents(options.stdout ?? ""), as: UTF8.self))
  }

  @Test("every client works over TLS and SASL, and names a wrong password or certificate")
  func everyClientWorksAndSaysWhatIsWrong() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-secure")
    let node = try await startNode(in: directory.path)
    let settings = try await settings(node)
    let download = ["download", "http://a.example/a.mp4"]

    // Admin, producer, reader and group member.
    let migrated = try await run(["migrate"], settings, in: directory.path)
    #expect(migrated.status == .exited(0), "\(migrated.output)")
    let sent = try await run(download, settings, in: directory.path)
    #expect(sent.status == .exited(0), "\(sent.output)")
    let topic = TopicPlan(prefix: "secure.").commands
    let sasl = try #require(try KafkaConfiguration.fromEnvironment(settings))
    #expect(try await firstKey(sasl, topic) == sent.output.split(separator: "\n").last.map { Array($0.utf8) })
    let consumer = try KafkaConsumer(sasl, group: "secure", topics: [topic])
    let batch = try #require(try await consumer.next())
    consumer.commit(batch.ranges)
    await consumer.close()

    // TLS without SASL.
    let tls = try #require(
      try KafkaConfiguration.fromEnvironment([
        "REELHAUL_KAFKA": node.tls, "REELHAUL_KAFKA_SECURITY_PROTOCOL": "ssl",
        "REELHAUL_KAFKA_SSL_CA_LOCATION": node.certificate,
      ]))
    #expect(try await firstKey(tls, topic) == batch.records.first?.key)

    // Each mistake is reported with its reason, its address and the exit code for an unreachable service.
    let mistakes: [(change: [String: String], reason: String)] = [
      (["REELHAUL_KAFKA_SASL_PASSWORD": "wrong"], "Authentication failed"),
      (["REELHAUL_KAFKA_SSL_CA_LOCATION": "/etc/ssl/certs"], "certificate verify failed"),
      // The broker just closes the connection.
      (["REELHAUL_KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"], "REELHAUL_KAFKA_SECURITY_PROTOCOL"),
    ]
    let path = directory.path
    for (change, reason) in mistakes {
      let commands = [download, ["migrate"], ["doctor"]]
      // All at once, because each waits for some seconds.
      let results = try await withThrowingTaskGroup(of: (command: [String], result: Result).self) { group in
        for command in commands {
          group.addTask { (command, try await run(command, settings.merging(change) { $1 }, in: path)) }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.count == commands.count)
      for (command, result) in results {
        #expect(result.status == .exited(3), "\(command), \(change): \(result.output)")
        #expect(result.output.contains(node.sasl), "\(command), \(change): \(result.output)")
        #expect(result.output.contains(reason), "\(command), \(change): \(result.output)")
        #expect(!result.output.contains(Self.password))
      }
    }
    await node.kafka.kill()
  }

  /// The key of the topic's first record.
  private func firstKey(_ configuration: KafkaConfiguration, _ topic: String) async throws -> [UInt8]? {
    let reader = try await KafkaReader.open(configuration, topics: [topic], from: .beginning)
    let key = try await reader.next()?.first?.key
    await reader.close()
    return key
  }
}
