import ReelhaulClient
import ReelhaulKafka
import ReelhaulSystem
import TaskCore

extension Benchmark {
  /// Measures everything around the work: tasks that do nothing, from the Kafka record to the event `succeeded`.
  static let noop = Benchmark(
    name: "noop", summary: "Tasks that do nothing, from Kafka record to succeeded with its event"
  ) { bench in
    let count = 50_000
    let fleet = try await BenchFleet.start(bench, workers: 2, environment: ["REELHAUL_CONCURRENCY": "500"])
    let kafka = try fleet.kafka()
    let client = try ReelhaulClient(kafka, topicPrefix: fleet.topics.prefix, source: "/reelhaul/bench")
    // Reads only between the runs, because in a real fleet events are read on other machines.
    let events = try KafkaConsumer(
      try KafkaConfiguration(bootstrap: kafka.bootstrap, properties: ["queued.max.messages.kbytes": "65536"]),
      group: "bench", topics: [fleet.topics.events])
    events.pause()
    var runs: [Double] = []
    for run in 0..<6 {
      let start = Clocks.boottime()
      let specs = (0..<count).map { number in
        TaskSpec(id: .make(), kind: .noop, source: "noop://host-\(number % 4)/", queue: "queue-\(number % 4)")
      }
      for first in stride(from: 0, to: count, by: 5000) {
        try await client.submit(Array(specs[first..<min(first + 5000, count)]))
      }
      let end = try await fleet.finished((run + 1) * count)
      events.resume()
      try await seen(specs, events)
      events.pause()
      // The first run only warms up.
      if run > 0 { runs.append(Double(count) / (Double(end - start) / 1e9)) }
    }
    await events.close()
    await client.close()
    await fleet.stop()
    var report = BenchReport("noop")
    report.add("tasks", runs, "tasks/s")
    report.atLeast(10_000, "tasks/s", report.median("tasks"))
    report.print(bench)
  }

  /// Returns once the event `succeeded` of every task has been read.
  private static func seen(_ specs: [TaskSpec], _ events: KafkaConsumer) async throws {
    let type = KafkaHeader("ce_type", "reelhaul.task.succeeded")
    var missing = Set(specs.map { Array($0.id.utf8) })
    while !missing.isEmpty, let batch = try await events.next() {
      for record in batch.records where record.headers.contains(type) { missing.remove(record.key ?? []) }
    }
  }
}
