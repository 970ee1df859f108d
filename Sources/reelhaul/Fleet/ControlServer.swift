import ControlAPI
import HTTPServer
import OTLP
import ReelhaulClient
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TaskStore

/// The HTTP API and the dashboard, served by this process. While it serves, it works off operations.
enum ControlServer {
  static let port = 8080

  /// Serves on the first of `ports` that is free, while `body` runs, which gets the dashboard's address. `onOutage` is told
  /// when operations wait. Throws ``SystemError`` if it can listen on none.
  static func serving<Result: Sendable>(
    _ store: any ControlStore, _ client: ReelhaulClient, _ kafka: KafkaConfiguration, _ topics: TopicPlan, ports: [Int],
    at address: ServeAddress = ServeAddress(), telemetry: OTLPExporter? = nil, log: Logger? = nil,
    onOutage: @escaping OperationDriver.OnOutage,
    _ body: @Sendable (String) async throws -> Result
  ) async throws -> Result {
    let loop = EventLoop(name: "http")
    defer { loop.shutdown() }
    let events = EventHub(loop: loop, kafka: kafka, topics: topics, log: log)
    let letters = try DeadLetterReader(kafka, topicPrefix: topics.prefix)
    let handler = ControlAPI(
      store: store, send: { try await client.send($0) }, loop: loop, version: Program.version,
      settings: address.settings, log: log, tracer: telemetry?.tracer, events: events, deadLetters: letters)
    var settings = HTTPServer.Settings()
    settings.host = address.host
    // The rest of the files is for PostgreSQL, Kafka and this process.
    settings.connections = max(100, min(settings.connections, FileLimit.raise() - 100))
    let (server, port) = try await listening(ports) { [settings] in
      var settings = settings
      settings.port = $0
      return HTTPServer(loop: loop, settings: settings, handler: handler)
    }
    let driver = OperationDriver(
      store: store, send: { try await client.send($0) }, loop: loop, onOutage: onOutage)
    let operations = loop.task { await driver.run() }
    let check = loop.task { await handler.checkSchema() }
    await telemetry?.start { try? await handler.metricsSnapshot() }
    let outcome: Swift.Result<Result, any Error>
    do {
      let host = address.host.contains(":") ? "[\(address.host)]" : address.host
      outcome = .success(try await body("http://\(host):\(port)\(address.settings.prefix)/"))
    } catch {
      outcome = .failure(error)
    }
    check.cancel()
    operations.cancel()
    _ = (await check.result, await operations.result)
    await server.stop()
    await events.stop()
    await letters.close()
    await telemetry?.close()
    return try outcome.get()
  }

  private static func listening(_ ports: [Int], _ make: (Int) -> HTTPServer) async throws -> (HTTPServer, port: Int) {
    for port in ports.dropLast() {
      let server = make(port)
      if let port = try? await server.start() { return (server, port) }
    }
    let server = make(ports.last ?? 0)
    return (server, try await server.start())
  }
}
