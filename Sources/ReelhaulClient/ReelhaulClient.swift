import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// Puts tasks and commands on Kafka, for programs that give a Reelhaul fleet its work.
///
/// ```swift
/// let client = try ReelhaulClient.connect(bootstrap: "127.0.0.1:9092")
/// let id = UUID.make()
/// try await client.submit(TaskSpec(id: id, kind: .download, source: "https://example.com/a.mp4"))
/// try await client.prioritize(id, priority: 10)
/// await client.close()
/// ```
///
/// A call returns when all in-sync replicas have the commands. The fleet applies them soon after: a command is intent, and
/// whether it was legal shows in the task's events. Everything is safe to repeat: a submit is idempotent by its task's id.
public final class ReelhaulClient: Sendable {
  private let producer: KafkaProducer
  private let topic: String
  private let source: String

  private init(producer: KafkaProducer, topic: String, source: String) {
    self.producer = producer
    self.topic = topic
    self.source = source
  }

  /// Makes a client; it connects by itself, and again when the connection is lost.
  ///
  /// - Parameters:
  ///   - bootstrap: `host:port`, comma-separated.
  ///   - properties: librdkafka's, such as `security.protocol`.
  ///   - topicPrefix: what the fleet's topics start with.
  ///   - source: who submits, as a URI reference: the commands' CloudEvents source.
  public static func connect(
    bootstrap: String, properties: [String: String] = [:], topicPrefix: String = "reelhaul.",
    source: String = "/reelhaul/client"
  ) throws(ReelhaulClientError) -> ReelhaulClient {
    do throws(KafkaError) {
      return try ReelhaulClient(
        KafkaConfiguration(bootstrap: bootstrap, properties: properties), topicPrefix: topicPrefix, source: source)
    } catch {
      throw ReelhaulClientError(error)
    }
  }

  package convenience init(
    _ configuration: KafkaConfiguration, topicPrefix: String, source: String
  ) throws(KafkaError) {
    let topic = try TopicPlan(checking: topicPrefix).commands
    self.init(producer: try KafkaProducer(configuration), topic: topic, source: source)
  }

  public func submit(_ task: TaskSpec) async throws(ReelhaulClientError) {
    try await send([.submit(task)])
  }

  /// Submits in order. Tasks of one batch may come after each other (`after`).
  public func submit(_ tasks: [TaskSpec]) async throws(ReelhaulClientError) {
    try await send(tasks.map(Command.submit))
  }

  public func pause(_ task: UniqueID) async throws(ReelhaulClientError) { try await control(task, .pause) }
  public func resume(_ task: UniqueID) async throws(ReelhaulClientError) { try await control(task, .resume) }
  public func cancel(_ task: UniqueID) async throws(ReelhaulClientError) { try await control(task, .cancel) }
  /// Brings a failed or canceled task back.
  public func retry(_ task: UniqueID) async throws(ReelhaulClientError) { try await control(task, .retry) }
  /// Forgets a task that is over; `files`: the files that it made are deleted, too.
  public func remove(_ task: UniqueID, files: Bool = false) async throws(ReelhaulClientError) {
    try await control(task, .remove(files: files))
  }

  /// `priority`: −1000…1000, higher runs first.
  public func prioritize(_ task: UniqueID, priority: Int) async throws(ReelhaulClientError) {
    try await control(task, .prioritize(priority))
  }

  private func control(_ task: UniqueID, _ action: ControlAction) async throws(ReelhaulClientError) {
    try await send([.control(Command.Control(id: .make(), taskID: task, action: action))])
  }

  /// Sends commands in order. The error names those that were not acknowledged.
  public func send(_ commands: [Command]) async throws(ReelhaulClientError) {
    try await enqueue(commands).acknowledged()
  }

  /// Sends commands after all that came before them, and does not wait: the sender bounds what it has on its way.
  package func enqueue(_ commands: [Command]) -> PendingCommands {
    var writer = CommandMessages(topic: topic, source: source)
    return PendingCommands(producer.enqueue(commands.map { writer.message($0) }))
  }

  /// Waits up to `timeout` for what is on its way, and disconnects.
  public func close(within timeout: Duration = .seconds(10)) async {
    await producer.close(within: timeout)
  }
}
