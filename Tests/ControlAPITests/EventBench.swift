import ControlAPI
import HTTPServer
import ReelhaulKafka
import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TestKit
import Testing

/// A server of `/v1/events` over a topic of three partitions, whose events the test writes.
struct EventBench: Sendable {
  let kafka: KafkaConfiguration
  let topics: TopicPlan
  let producer: KafkaProducer
  /// That of the server.
  let loop = EventLoop(name: "events")

  static let partitions = 3

  /// Runs `body` on an embedded broker.
  static func run(_ body: @escaping @Sendable (EventBench) async throws -> Void) async throws {
    let topics = TopicPlan()
    let broker = try DevelopmentBroker(
      topics: [topics.events, topics.progress].map { TopicSpec(name: $0, partitions: partitions) })
    try await run(KafkaConfiguration(bootstrap: broker.bootstrap), topics, body)
    await broker.close()
  }

  static func run(
    _ kafka: KafkaConfiguration, _ topics: TopicPlan, _ body: @escaping @Sendable (EventBench) async throws -> Void
  ) async throws {
    let bench = EventBench(kafka: kafka, topics: topics, producer: try KafkaProducer(kafka))
    defer { bench.loop.shutdown() }
    do {
      try await body(bench)
    } catch {
      await bench.producer.close()
      throw error
    }
    await bench.producer.close()
  }

  /// Serves those who have a token while `body` runs, which gets the port and one for these queues.
  func serving(tokens queues: Set<String>, _ body: @escaping @Sendable (Int, String) async throws -> Void) async throws
  {
    let secret = TokenSecret()
    let new = NewToken(name: "limited", scope: .read, queues: queues, lifetime: nil, hash: secret.hash)
    try await serving(token: new) { port, _ in try await body(port, secret.text) }
  }

  /// Serves while `body` runs, which gets the port.
  func serving(
    _ change: (inout EventHub.Settings, inout HTTPServer.Settings) -> Void = { _, _ in }, log: Logger? = nil,
    token: NewToken? = nil, _ body: @escaping @Sendable (Int, HTTPServer) async throws -> Void
  ) async throws {
    var (settings, server) = (EventHub.Settings(), HTTPServer.Settings())
    change(&settings, &server)
    try await PostgresPool.with(.patient(url: try await TestPostgres.shared.database()), size: 2) {
      [settings, server] pool in
      _ = try await Schema.migrator(pool).apply()
      let hub = EventHub(loop: loop, kafka: kafka, topics: topics, settings: settings, log: log)
      let store = PostgresStore(pool: pool)
      if let token { _ = try await store.createToken(token) }
      var access = ControlAPI.Settings()
      access.requiresTokens = token != nil
      let api = ControlAPI(store: store, send: { _ in }, loop: loop, version: "1", settings: access, events: hub)
      let http = HTTPServer(loop: loop, settings: server, handler: api)
      let port = try await http.start()
      do {
        try await body(port, http)
      } catch {
        await http.stop(within: .zero)
        await hub.stop()
        throw error
      }
      await http.stop(within: .zero)
      await hub.stop()
    }
  }

  func publish(
    _ id: UniqueID, _ sequences: ClosedRange<Int> = 1...1, _ kind: TaskEvent.Kind = .submitted,
    queue: String = "default",
    labels: [String: String] = [:]
  ) async throws {
    try await producer.sendAll(sequences.map { message(id, $0, kind, queue: queue, labels: labels) })
  }

  func message(
    _ id: UniqueID, _ sequence: Int, _ kind: TaskEvent.Kind, queue: String = "default", labels: [String: String] = [:]
  ) -> KafkaMessage {
    var spec = TaskSpec(id: id, kind: .noop, source: "noop://a/")
    spec.queue = queue
    spec.labels = labels
    let at = Timestamp(microseconds: Clocks.realtimeMicroseconds())
    let task = kind == .removed ? nil : TaskDocument(spec: spec, state: .queued, createdAt: at)
    let event = TaskEvent(taskID: id, sequence: sequence, kind: kind, at: at, task: task)
    return KafkaMessage(topic: topics.events, key: id.utf8, value: TaskEventJSON.encode(event))
  }

  func sample(of id: UniqueID) async throws {
    let sample = ProgressSample(taskID: id, epoch: 1, bytesDone: 5, bytesTotal: 10, rate: 1)
    try await producer.send(
      topic: topics.progress, key: id.utf8, value: ProgressJSON.encode(sample, at: Timestamp(microseconds: 0)))
  }
}

/// One client of `/v1/events`.
final class EventClient: Sendable {
  struct Event: Hashable, Sendable {
    var id: String?
    var name: String
    var data: String

    /// The task and the sequence of a state change.
    var key: String {
      guard let event = try? TaskEventJSON.decode(Array(data.utf8)) else { return name }
      return "\(event.taskID) \(event.sequence)"
    }
  }

  private let raw: RawClient
  private let received = Lock<[Event]>([])

  init(_ port: Int, _ query: String = "", after id: String? = nil, headers: String = "", receiveBuffer: Int32? = nil)
    throws
  {
    raw = try RawClient(port: port, receiveBuffer: receiveBuffer)
    let header = headers + (id.map { "Last-Event-ID: \($0)\r\n" } ?? "")
    raw.send("GET /v1/events\(query) HTTP/1.1\r\nHost: localhost\r\n\(header)\r\n")
  }

  /// The events until there is one that fits, or the server ends the stream.
  @discardableResult
  func receive(until isEnough: ([Event]) -> Bool) -> [Event] {
    var blocks = EventBlocks()
    _ = raw.receive { text in
      blocks.read(text)
      return isEnough(blocks.events)
    }
    received.withLock { $0 += blocks.events }
    return blocks.events
  }

  /// All events so far.
  var events: [Event] { received.withLock { $0 } }

  /// Waits for a state change with this sequence.
  @discardableResult
  func receive(_ id: UniqueID, _ sequence: Int) -> [Event] {
    let part = "\"taskId\":\"\(id)\",\"sequence\":\(sequence),"
    return receive { $0.contains { $0.data.prefix(200).contains(part) } }
  }
}

/// The whole events of a text that grows.
private struct EventBlocks {
  private(set) var events: [EventClient.Event] = []
  /// How many bytes were read.
  private var end = 0

  mutating func read(_ text: String) {
    let bytes = Array(text.utf8.dropFirst(end))
    var start = 0
    var index = 1
    while index < bytes.count {
      if bytes[index] == 10, bytes[index - 1] == 10 {
        add(bytes[start..<index - 1])
        start = index + 1
        index += 1
      }
      index += 1
    }
    end += start
  }

  private mutating func add(_ block: ArraySlice<UInt8>) {
    var event = EventClient.Event(id: nil, name: "message", data: "")
    for line in block.split(separator: 10) {
      let line = String(decoding: line, as: UTF8.self)
      if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
      if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
      if line.hasPrefix("data: ") { event.data = String(line.dropFirst(6)) }
    }
    if !event.data.isEmpty { events.append(event) }
  }
}
