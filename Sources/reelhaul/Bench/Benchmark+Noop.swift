import Kafka
import Messages
import ReelhaulClient
import System
import TaskCore

extension Benchmark {
  /// Everything around the work: tasks that do nothing, from the Kafka record to the event `succeeded`.
  static let noop = Benchmark(
    name: "noop", summary: "Tasks that do nothing, from Kafka record to succeeded with its event"
  ) { context in
    let count = 50_000
    let fleet = try await BenchFleet.start(workers: 2, environment: ["REELHAUL_CONCURRENCY": "500"])
    let client = try ReelhaulClient(fleet.kafka(), topicPrefix: fleet.topics.prefix, source: "/reelhaul/bench")
    let events = try KafkaConsumer(fleet.kafka(), group: "bench", topics: [fleet.topics.events])
    var runs: [Double] = []
    for run in 0..<6 {
      let seconds = try await BenchCommandLine.time {
        async let seen: Void = succeeded(count, events)
        let specs = (0..<count).map { number in
          TaskSpec(id: .make(), kind: .noop, source: "noop://host-\(number % 4)/", queue: "queue-\(number % 4)")
        }
        for start in stride(from: 0, to: count, by: 5000) {
          try await client.submit(Array(specs[start..<min(start + 5000, count)]))
        }
        try await seen
      }
      // The first one warms up.
      if run > 0 { runs.append(Double(count) / seconds) }
    }
    await events.close()
    await client.close()
    await fleet.stop()
    var report = BenchReport("noop")
    report.add("tasks", runs, "tasks/s")
    report.atLeast(10_000, "tasks/s", report.median("tasks"))
    report.print(context)
  }

  /// Returns once `count` tasks have their event `succeeded`.
  private static func succeeded(_ count: Int, _ events: KafkaConsumer) async throws {
    let type = KafkaHeader("ce_type", "reelhaul.task.succeeded")
    var seen = 0
    while seen < count, let batch = try await events.next() {
      seen += batch.records.count { $0.headers.contains(type) }
    }
  }
}
