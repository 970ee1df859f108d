import CommandLineKit
import Glibc
import ReelhaulSystem
import TaskCore

extension Benchmark {
  /// `reelhaul batch` of 100,000 lines, to brokers without workers.
  static let batch = Benchmark(
    name: "batch", summary: "100,000 commands from a file, acknowledged by the broker"
  ) { bench in
    let count = 100_000
    var report = BenchReport("batch")
    for (broker, target) in [(BenchFleet.Broker.embedded, 100_000.0), (.apacheKafka, 60_000)] {
      if broker == .apacheKafka, bench.environment["KAFKA_HOME"]?.isEmpty ?? true {
        bench.console.note("Apache Kafka is left out: KAFKA_HOME is not set.")
        continue
      }
      var runs: [Double] = []
      for _ in 0..<5 {
        // A new broker for each run, because the development broker keeps only 5 MB of a partition.
        let fleet = try await BenchFleet.start(bench, workers: 0, broker: broker)
        let file = "\(fleet.directory.path)/lines"
        try writeLines(count, to: file)
        try await fleet.run(["batch", file], output: "\(fleet.directory.path)/warm-up")
        let seconds = try await BenchCommandLine.time {
          try await fleet.run(["batch", file], output: "\(fleet.directory.path)/ids")
        }
        runs.append(Double(count) / seconds)
        await fleet.stop()
      }
      report.add(broker.name, runs, "commands/s")
      report.atLeast(target, "commands/s, \(broker.name)", report.median(broker.name))
    }
    report.print(bench)
  }

  private static func writeLines(_ count: Int, to path: String) throws {
    var text = ""
    for number in 0..<count {
      text += """
        {"kind":"download","source":"http://127.0.0.1:9/films/\(number).mp4",\
        "destination":"storage://default/films/\(number).mp4","labels":{"title":"Film \(number)"}}\n
        """
    }
    try TextFile.write(text, to: path)
  }
}
