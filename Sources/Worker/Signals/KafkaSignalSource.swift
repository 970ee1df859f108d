import Kafka
import System
import Telemetry

/// All partitions of the `signals` topic, from the end; opened once Kafka can be reached.
package actor KafkaSignalSource: SignalSource {
  private let loop: EventLoop
  private let configuration: KafkaConfiguration
  private let topic: String
  private let log: Logger
  private var reader: KafkaReader?
  private var outage = Outage()
  private var backoff = Backoff(base: .milliseconds(200), limit: .seconds(10), seed: .random(in: 0 ... .max))

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  package init(loop: EventLoop, configuration: KafkaConfiguration, topic: String, log: Logger) {
    self.loop = loop
    self.configuration = configuration
    self.topic = topic
    self.log = log
  }

  package func next() async throws -> [KafkaRecord]? {
    while true {
      if let reader { return try await reader.next() }
      do {
        reader = try await KafkaReader.open(configuration, topics: [topic], from: .end)
      } catch {
        log.log(
          outage.failed(), "signals cannot be read yet: intents wait for renewals",
          ["topic": .text(topic), "error": .text("\(error)")])
        try await loop.sleep(for: backoff.next())
      }
    }
  }

  package func close() async {
    await reader?.close()
  }
}
