import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// Reads the running tasks four times a second. It publishes changes to the `progress` topic, at most one sample per
/// task and round, and lets the watchdog check tasks without changes.
package actor ProgressSampler {
  private static let interval = Duration.milliseconds(250)

  private let loop: EventLoop
  private let runner: Runner
  private let sink: any MessageSink
  private let topics: TopicPlan

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// `sink` may lose messages.
  package init(loop: EventLoop, runner: Runner, sink: any MessageSink, topics: TopicPlan) {
    self.loop = loop
    self.runner = runner
    self.sink = sink
    self.topics = topics
  }

  /// Runs until its task is canceled.
  package func run() async {
    while (try? await loop.sleep(for: Self.interval)) != nil {
      let at = Timestamp(microseconds: Clocks.realtimeMicroseconds())
      for sample in await runner.sample(now: .now) { sink.offer(message(sample, at)) }
    }
  }

  private func message(_ sample: ProgressSample, _ at: Timestamp) -> KafkaMessage {
    KafkaMessage(
      topic: topics.progress, key: Array(sample.taskID.description.utf8), value: ProgressJSON.encode(sample, at: at))
  }
}
