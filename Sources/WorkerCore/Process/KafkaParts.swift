import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry

/// The connections of a worker to Kafka.
struct KafkaParts: Sendable {
  let consumer: KafkaConsumer
  let signals: KafkaSignalSource
  let messages: KafkaProducer
  let rounds: TransactionalProducer
  let progress: KafkaProducer

  /// Of dead letters and signals, which may come twice. The loss of an idempotent producer would end the worker.
  static let letters = KafkaProducer.Guarantee.everyReplicaMaybeTwice

  /// Does not wait for the cluster. Calls `onFatal` when a client is lost for good.
  ///
  /// Throws ``KafkaError`` if the configuration is refused.
  init(
    _ configuration: WorkerConfiguration, loop: EventLoop, log: Logger, onFatal: @escaping @Sendable () -> Void
  ) throws(KafkaError) {
    let topics = configuration.settings.topics
    let kafka = configuration.kafka.logging(to: log) { error in
      log.error("Kafka: the client is lost", ["error": .text("\(error)")])
      onFatal()
    }
    consumer = try KafkaConsumer(kafka, group: topics.group, topics: [topics.commands], isMember: false)
    signals = KafkaSignalSource(loop: loop, configuration: kafka, topics: topics, log: log)
    messages = try KafkaProducer(kafka, guarantee: Self.letters, window: .init(bytes: 8 << 20))
    // No `onFatal` here: the relay makes a new client after each loss, and logs the reason.
    rounds = try TransactionalProducer(
      configuration.kafka.logging(to: log) { _ in }, id: topics.relay, timeout: RelayPlanner.usable)
    progress = try KafkaProducer(kafka, guarantee: .leader, window: .init(messages: 2000, bytes: 1 << 20))
  }

  /// Leaves the group and sends pending messages, at the same time. Gives up messages that are not acknowledged after
  /// `limit`.
  func close(within limit: Duration) async {
    async let signals: Void = signals.close()
    async let consumer: Void = consumer.close(within: limit)
    async let rounds: Void = rounds.close()
    async let progress: Void = progress.close(within: min(limit, .seconds(1)))
    async let messages: Void = messages.close(within: limit)
    _ = await (signals, consumer, rounds, progress, messages)
  }
}
