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
/// A call returns when all in-sync replicas have the commands, and fails if they have not within the property
/// `message.timeout.ms` (60,000 by default). Canceling the Swift task that waits for it changes nothing: what is sent
/// cannot be called back.
///
/// The fleet applies the commands soon after. A command is an intent: where it was allowed, the task's events show its
/// effect, and a refused one is a record of the topic `dead-letters`.
///
/// A call that failed may have arrived all the same. It can be repeated safely with the same ids: a submit is idempotent
/// by its task's id, and the other commands by their own `id`.
public final class ReelhaulClient: Sendable {
  private let configuration: KafkaConfiguration
  private let producer: Lock<(current: KafkaProducer, isClosed: Bool)>
  private let topic: String
  private let source: String

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

  package init(
    _ configuration: KafkaConfiguration, topicPrefix: String, source: String
  ) throws(KafkaError) {
    topic = try TopicPlan(checking: topicPrefix).commands
    producer = Lock((try KafkaProducer(configuration), false))
    self.configuration = configuration
    self.source = source
  }

  /// Submits a task as it is: a wrong one is refused by the fleet. ``TaskSpec/validate()`` finds most
  /// mistakes before.
  public func submit(_ task: TaskSpec) async throws(ReelhaulClientError) {
    try await send([.submit(task)])
  }

  /// Submits tasks in order. A task may name others of the same batch in `after`.
  public func submit(_ tasks: [TaskSpec]) async throws(ReelhaulClientError) {
    try await send(tasks.map(Command.submit))
  }

  /// - Parameter id: the command's own, as for those below. A repetition with the same id changes nothing.
  public func pause(_ task: UniqueID, id: UniqueID = .make()) async throws(ReelhaulClientError) {
    try await control(task, .pause, id)
  }

  public func resume(_ task: UniqueID, id: UniqueID = .make()) async throws(ReelhaulClientError) {
    try await control(task, .resume, id)
  }

  public func cancel(_ task: UniqueID, id: UniqueID = .make()) async throws(ReelhaulClientError) {
    try await control(task, .cancel, id)
  }

  /// Queues a failed or canceled task again.
  public func retry(_ task: UniqueID, id: UniqueID = .make()) async throws(ReelhaulClientError) {
    try await control(task, .retry, id)
  }

  /// Deletes the record of a task that no worker runs; with `files` also the file that it made in a storage.
  public func remove(
    _ task: UniqueID, files: Bool = false, id: UniqueID = .make()
  ) async throws(ReelhaulClientError) {
    try await control(task, .remove(files: files), id)
  }

  /// `priority` is from −1000 to 1000. Higher runs first.
  public func prioritize(
    _ task: UniqueID, priority: Int, id: UniqueID = .make()
  ) async throws(ReelhaulClientError) {
    try await control(task, .prioritize(priority), id)
  }

  private func control(
    _ task: UniqueID, _ action: ControlAction, _ id: UniqueID
  ) async throws(ReelhaulClientError) {
    try await send([.control(Command.Control(id: id, taskID: task, action: action))])
  }

  /// Sends commands in order. The error names the commands that were not acknowledged.
  public func send(_ commands: [Command]) async throws(ReelhaulClientError) {
    try await enqueue(commands).acknowledged()
  }

  /// Sends commands after all earlier ones, without waiting. The sender must bound the number of pending commands.
  package func enqueue(_ commands: [Command]) -> PendingCommands {
    var writer = CommandMessages(topic: topic, source: source)
    return PendingCommands(working.enqueue(commands.map { writer.message($0) }))
  }

  /// After a fatal error another producer takes the place of the one that had it.
  private var working: KafkaProducer {
    producer.withLock { producer in
      if !producer.isClosed, producer.current.hasFailed, let next = try? KafkaProducer(configuration) {
        producer.current = next
      }
      return producer.current
    }
  }

  /// Waits up to `timeout` for pending commands, and disconnects.
  public func close(within timeout: Duration = .seconds(10)) async {
    let last = producer.withLock { producer in
      producer.isClosed = true
      return producer.current
    }
    await last.close(within: timeout)
  }
}
