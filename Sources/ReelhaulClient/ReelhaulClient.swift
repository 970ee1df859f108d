import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// Puts tasks and commands on Kafka, for programs that submit work to a Reelhaul fleet.
///
/// ```swift
/// let client = try ReelhaulClient.connect(bootstrap: "127.0.0.1:9092")
/// let id = UniqueID.make()
/// try await client.submit(TaskSpec(id: id, kind: .download, source: "https://example.com/a.mp4"))
/// try await client.prioritize(id, priority: 10)
/// await client.close()
/// ```
///
/// A call returns when all in-sync replicas have the commands. The fleet applies them soon after. A command is an
/// intent: the task's events show whether it was allowed. Every call can be repeated safely: a submit is idempotent by
/// its task's id.
public final class ReelhaulClient: Sendable {
  private let producer: KafkaProducer
  private let topic: String
  private let source: String

  private init(producer: KafkaProducer, topic: String, source: String) {
    self.producer = producer
    self.topic = topic
    self.source = source
  }

  /// Makes a client. It connects by itself, and connects again when the connection is lost.
  ///
  /// - Parameters:
  ///   - bootstrap: `host:port`, separated by commas.
  ///   - properties: librdkafka's properties, such as `security.protocol`.
  ///   - topicPrefix: the first part of the fleet's topic names.
  ///   - source: the submitter as a URI reference; it becomes the CloudEvents source of the commands.
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

  /// Submits tasks in order. A task may name others of the same batch in `after`.
  public func submit(_ tasks: [TaskSpec]) async throws(ReelhaulClientError) {
    try await send(tasks.map(Command.submit))
  }

  public func pause(_ task: UniqueID) async throws(ReelhaulClientError) { try await control(task, .pause) }
  public func resume(_ task: UniqueID) async throws(ReelhaulClientError) { try await control(task, .resume) }
  public func cancel(_ task: UniqueID) async throws(ReelhaulClientError) { try await control(task, .cancel) }
  /// Queues a failed or canceled task again.
  public func retry(_ task: UniqueID) async throws(ReelhaulClientError) { try await control(task, .retry) }
  /// Deletes the record of a task that is over; with `files` also the file that it made.
  public func remove(_ task: UniqueID, files: Bool = false) async throws(ReelhaulClientError) {
    try await control(task, .remove(files: files))
  }

  /// `priority` is from −1000 to 1000. Higher runs first.
  public func prioritize(_ task: UniqueID, priority: Int) async throws(ReelhaulClientError) {
    try await control(task, .prioritize(priority))
  }

  private func control(_ task: UniqueID, _ action: ControlAction) async throws(ReelhaulClientError) {
    try await send([.control(Command.Control(id: .make(), taskID: task, action: action))])
  }

  /// Sends commands in order. The error names the commands that were not acknowledged.
  public func send(_ commands: [Command]) async throws(ReelhaulClientError) {
    try await enqueue(commands).acknowledged()
  }

  /// Sends commands after all earlier ones, without waiting. The sender must bound the number of pending commands.
  package func enqueue(_ commands: [Command]) -> PendingCommands {
    var writer = CommandMessages(topic: topic, source: source)
    return PendingCommands(producer.enqueue(commands.map { writer.message($0) }))
  }

  /// Waits up to `timeout` for pending commands, and disconnects.
  public func close(within timeout: Duration = .seconds(10)) async {
    await producer.close(within: timeout)
  }
}
