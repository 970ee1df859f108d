import ReelhaulSystem
import TaskCore

extension Benchmark {
  /// Measures what a large number of waiting tasks costs: the workers, claims, and the commands that read the store.
  static let backlog = Benchmark(
    name: "backlog", summary: "Rate, claims and the commands that read, while 1,000,000 tasks wait"
  ) { bench in
    var report = BenchReport("backlog")
    for shape in [ClaimLoad.few, .many] {
      let claims = try await shape.measure(bench)
      report.add("p50 of a claim, \(shape.name)", claims.p50, "ms")
      report.add("p99 of a claim, \(shape.name)", claims.p99, "ms")
      report.atMost(shape.target, "ms, p99 of a claim, \(shape.name)", report.median("p99 of a claim, \(shape.name)"))
    }
    try await measureFleets(bench, &report)
    report.print(bench)
  }

  /// Two fleets take turns, so that both meet the same machine. The other fleet rests meanwhile.
  private static func measureFleets(_ bench: BenchContext, _ report: inout BenchReport) async throws {
    let environment = ["REELHAUL_CONCURRENCY": "500"]
    let small = try await BenchFleet.start(bench, workers: 2, environment: environment)
    let large = try await BenchFleet.start(bench, workers: 2, environment: environment)
    let measured = try await small.withStore { few in
      try await large.withStore { many in
        var measured = Measured()
        let (short, long) = (HeldBacklog(few), HeldBacklog(many))
        try await short.load(10_000)
        try await long.load(1_000_000)
        for _ in 0..<5 {
          measured.short.append(try await short.whileDraining { try await Task.sleep(for: .seconds(8)) }.rate)
          measured.long.append(try await long.whileDraining { try await Task.sleep(for: .seconds(8)) }.rate)
        }
        let task = await long.newest
        measured.commands = try await long.whileDraining { try await time(commands(task), of: large) }.result
        for _ in 0..<5 {
          let drain = try await long.whileDraining(refills: false) { try await Task.sleep(for: .seconds(5)) }
          measured.drained.append(drain.rate)
        }
        return measured
      }
    }
    await small.stop()
    await large.stop()
    report.add("10,000 queued, refilled", measured.short, "tasks/s")
    report.add("1,000,000 queued, refilled", measured.long, "tasks/s")
    report.add("1,000,000 queued, not refilled", measured.drained, "tasks/s")
    report.atLeast(
      0.9, "rate with 1,000,000 / rate with 10,000",
      report.median("1,000,000 queued, refilled") / report.median("10,000 queued, refilled"))
    for (command, times) in measured.commands {
      report.add(command, times, "ms")
      report.atMost(100, "ms, \(command)", report.median(command))
    }
  }

  private struct Measured {
    var short: [Double] = []
    var long: [Double] = []
    var drained: [Double] = []
    var commands: [(name: String, milliseconds: [Double])] = []
  }

  private static func commands(_ task: UniqueID) -> [(name: String, arguments: [String])] {
    [
      ("list", []), ("list --state queued", []), ("list --state running", []), ("list --state succeeded", []),
      ("list --queue queue-1", []), ("show", ["\(task)"]), ("limits", []), ("doctor", []),
    ].map { ($0, $0.split(separator: " ").map(String.init) + $1) }
  }

  /// Runs each command ten times, in turn. The times include the start of the process.
  private static func time(
    _ commands: [(name: String, arguments: [String])], of fleet: BenchFleet
  ) async throws -> [(name: String, milliseconds: [Double])] {
    var times = commands.map { (name: $0.name, milliseconds: [Double]()) }
    for _ in 0..<10 {
      for (index, command) in commands.enumerated() {
        let seconds = try await BenchCommandLine.time { try await fleet.run(command.arguments) }
        times[index].milliseconds.append(seconds * 1000)
      }
    }
    return times
  }
}
