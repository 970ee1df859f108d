import ReelhaulSystem
import TaskCore

extension Benchmark {
  /// Measures claims straight on the store, without the workers of a fleet.
  static let claims = Benchmark(
    name: "claims", summary: "Claims of 100 tasks by four workers at once, with few and with many queues and hosts"
  ) { bench in
    var report = BenchReport("claims")
    for shape in [ClaimLoad.few, .many] {
      let claims = try await shape.measure(bench)
      report.add("p50 of a claim, \(shape.name)", claims.p50, "ms")
      report.add("p99 of a claim, \(shape.name)", claims.p99, "ms")
      report.atMost(shape.target, "ms, p99 of a claim, \(shape.name)", report.median("p99 of a claim, \(shape.name)"))
    }
    report.print(bench)
  }

  /// Measures what a large number of waiting tasks costs the workers and the commands that read the store.
  static let backlog = Benchmark(
    name: "backlog", summary: "Rate, and the commands that read, while 1,000,000 tasks wait"
  ) { bench in
    var report = BenchReport("backlog")
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
        let reading = commands(await long.newest)
        measured.commands = reading
        measured.times = try await long.whileDraining { try await time(reading, of: large) }.result
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
    for (command, times) in zip(measured.commands, measured.times) {
      let name = (command[0] == "show" ? ["show"] : command).joined(separator: " ")
      report.add(name, times, "ms")
      // Succeeded tasks have no index of their own, which each settlement would have to write.
      if command != succeeded { report.atMost(100, "ms, \(name)", report.median(name)) }
    }
  }

  private struct Measured {
    var short: [Double] = []
    var long: [Double] = []
    var drained: [Double] = []
    var commands: [[String]] = []
    /// Of each command, in milliseconds.
    var times: [[Double]] = []
  }

  private static let succeeded = ["list", "--state", "succeeded"]

  private static func commands(_ task: UniqueID) -> [[String]] {
    [
      ["list"], ["list", "--state", "queued"], ["list", "--state", "running"], succeeded,
      ["list", "--queue", "queue-1"], ["show", "\(task)"], ["limits"], ["doctor"],
    ]
  }

  /// Runs each command ten times, in turn. The times include the start of the process.
  private static func time(_ commands: [[String]], of fleet: BenchFleet) async throws -> [[Double]] {
    var times = commands.map { _ in [Double]() }
    for _ in 0..<10 {
      for (index, command) in commands.enumerated() {
        let seconds = try await BenchCommandLine.time { try await fleet.run(command) }
        times[index].append(seconds * 1000)
      }
    }
    return times
  }
}
