import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry

/// Reads all partitions of the `signals` topic from the end, once Kafka can be reached. It also watches the fleet's
/// other topics, because a producer to a missing topic only waits.
package actor KafkaSignalSource: SignalSource {
  private let loop: EventLoop
  private let configuration: KafkaConfiguration
  private let topics: TopicPlan
  private let log: Logger
  private var reader: KafkaReader?
  private var isClosed = false
  private var outage = Outage()
  private var backoff = Backoff(base: .milliseconds(200), limit: .seconds(10), seed: .random(in: 0 ... .max))

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(loop: EventLoop, configuration: KafkaConfiguration, topics: TopicPlan, log: Logger) {
    self.loop = loop
    self.configuration = configuration
    self.topics = topics
    self.log = log
  }

  package func next() async throws -> [Signal]? {
    while true {
      if isClosed {
        // It may have been opened meanwhile.
        await reader?.close()
        return nil
      }
      if let reader { return try await reader.next()?.compactMap { Signal(key: $0.key) } }
      do {
        reader = try await KafkaReader.open(
          configuration, topics: [topics.signals], expecting: topics.topics.map(\.name), from: .end)
      } catch {
        log.log(
          outage.failed(error), "signals cannot be read yet: intents wait for renewals",
          ["topic": .text(topics.signals), "error": .text("\(error)")])
        try await loop.sleep(for: backoff.next())
      }
    }
  }

  package func close() async {
    isClosed = true
    await reader?.close()
  }
}
