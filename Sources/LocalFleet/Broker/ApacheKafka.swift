import ReelhaulKafka
import ReelhaulSystem

/// One node of a real Apache Kafka (KRaft mode) on the loopback interface, from an unpacked distribution and Java.
///
/// Its data stays in its directory. If it is started again with the same directory and port, it continues with the
/// same data.
package actor ApacheKafka {
  package nonisolated let bootstrap: String
  package nonisolated let logFile: String
  /// The ports for clients and for the controller.
  nonisolated let ports: (client: Int, controller: Int)
  private let home: String
  private let directory: String
  private var process: ChildProcess?

  /// Formats the directory if it is new, starts the node, and waits until it answers: 2 to 10 seconds.
  ///
  /// - Parameters:
  ///   - home: the distribution, with `bin/kafka-server-start.sh` (`KAFKA_HOME`).
  ///   - directory: for data, configuration and logs; created if it is missing.
  ///   - ports: for clients and for the controller, if they must stay the same; otherwise free ports.
  ///   - properties: more lines for `server.properties`.
  package init(
    home: String, directory: String, ports: (client: Int, controller: Int)? = nil, properties: [String: String] = [:]
  ) async throws {
    guard LocalFile.isExecutable("\(home)/bin/kafka-server-start.sh"),
      LocalFile.isExecutable("\(home)/bin/kafka-storage.sh")
    else {
      throw LocalFleetError(
        "\(home) is not an Apache Kafka: it has no bin/kafka-server-start.sh; correct KAFKA_HOME")
    }
    self.home = home
    self.directory = directory
    logFile = "\(directory)/kafka.log"
    let ports = try ports ?? (FreePort.find(), FreePort.find())
    self.ports = ports
    bootstrap = "127.0.0.1:\(ports.client)"
    try makeDirectories(directory)
    try TextFile.write(
      ApacheKafkaConfiguration(
        dataDirectory: "\(directory)/data", port: ports.client, controllerPort: ports.controller, extra: properties
      ).properties, to: "\(directory)/server.properties")
    if !LocalFile.exists("\(directory)/data/meta.properties") { try await format() }
    try await start()
  }

  /// The id of the server's process, while it runs.
  package var pid: Int32? { process.flatMap { $0.status == nil ? $0.pid : nil } }

  private func format() async throws {
    let format = try ChildProcess(
      "\(home)/bin/kafka-storage.sh",
      ["format", "-t", Self.clusterID(), "-c", "\(directory)/server.properties"], options())
    let status = await format.wait()
    guard status == .exited(0) else { throw failure("could not be formatted (\(status))") }
  }

  /// Starts the node if it does not run, and waits until it answers.
  package func start() async throws {
    guard pid == nil else { return }
    let process = try ChildProcess(
      "\(home)/bin/kafka-server-start.sh", ["\(directory)/server.properties"], options())
    self.process = process
    do {
      try await untilReady(process)
    } catch {
      await kill()
      throw error
    }
  }

  private func untilReady(_ process: ChildProcess) async throws {
    let admin = try KafkaAdmin(KafkaConfiguration(bootstrap: bootstrap), timeout: .seconds(3))
    let start = BootInstant.now
    var failure: (any Error)?
    while failure == nil {
      if let metadata = try? await admin.metadata(), metadata.brokers > 0 { break }
      if let status = process.status {
        failure = self.failure("ended while starting (\(status))")
      } else if BootInstant.now - start > .seconds(180) {
        failure = self.failure("did not answer within 180 s")
      } else {
        do { try await Task.sleep(for: .milliseconds(50)) } catch { failure = error }
      }
    }
    await admin.close()
    if let failure { throw failure }
  }

  /// Waits until the node ends, by itself or because it is stopped.
  package func ended() async -> ExitStatus {
    await process?.wait() ?? .exited(0)
  }

  /// Stops the node in order (SIGTERM), or by force after 15 seconds.
  package func stop() async {
    guard let process else { return }
    process.kill(15)
    let timer = Task {
      try await Task.sleep(for: .seconds(15))
      process.kill(9)
    }
    _ = await process.wait()
    timer.cancel()
    self.process = nil
  }

  /// Ends the node at once (SIGKILL), as a power failure would.
  package func kill() async {
    process?.kill(9)
    _ = await process?.wait()
    process = nil
  }

  private func options() -> ChildProcess.Options {
    var options = ChildProcess.Options()
    options.environment = [
      // The directory for the distribution's own logs, because the distribution itself may be read-only.
      "LOG_DIR": "\(directory)/logs",
      "KAFKA_HEAP_OPTS": "-Xms256m -Xmx512m",
    ]
    options.stdout = logFile
    options.stderr = logFile
    return options
  }

  private func failure(_ what: String) -> LocalFleetError {
    LocalFleetError(
      "Apache Kafka \(what); it needs Java 17 or newer; \(LocalFile.end(of: logFile))")
  }

  /// 16 random bytes as unpadded base64url, Kafka's form of a cluster id. It never starts with a dash, because a
  /// command line would take it for an option.
  private static func clusterID() -> String {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    // 22 digits carry 132 bits, and the last digit uses only the upper two of its bits.
    return String((0..<21).map { _ in digits.randomElement() ?? "A" }) + "A"
  }
}
