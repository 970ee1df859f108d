import CommandLineKit
import Glibc
import ReelhaulSystem
import TaskCore
import TaskStore

extension Benchmark {
  /// Measures what a worker needs for very many downloads that are slow: by their own limit, by the worker's limit, or
  /// because the server is.
  static let limited = Benchmark(
    name: "limited", summary: "1,000 downloads at 100 KiB/s each in one worker: CPU, memory and descriptors"
  ) { bench in
    let count = 1000
    let rate = 100 << 10
    // Many hosts, so that only the limit itself keeps a task from having 16 connections. The slow server is one host,
    // which allows each task one.
    let cases: [(name: String, origin: Int?, hosts: Int, task: String, environment: [String: String])] = [
      ("--rate", nil, 16, ",\"rate\":\(rate)", [:]),
      ("REELHAUL_RATE", nil, 16, "", ["REELHAUL_RATE": String(count * rate)]),
      ("slow server", rate, 1, "", [:]),
    ]
    var report = BenchReport("limited")
    for (name, originRate, hosts, task, environment) in cases {
      let origin = try await BenchOrigin.start([("film.mp4", 32 << 20)], rate: originRate, hosts: hosts)
      let common = ["REELHAUL_CONCURRENCY": String(count), "REELHAUL_HOST_CONNECTIONS": String(count)]
      let fleet = try await BenchFleet.start(
        bench, workers: 1, environment: common.merging(environment) { $1 })
      guard let worker = try await fleet.workers().first else { throw WorkError("there is no worker") }
      let lines = "\(fleet.directory.path)/lines"
      try TextFile.write(
        (0..<count).map {
          """
          {"kind":"download","source":"\(origin.url("film.mp4", host: $0 % hosts + 1))",\
          "destination":"storage://default/\($0).mp4"\(task)}\n
          """
        }.joined(), to: lines)
      try await fleet.run(["batch", lines])
      try await fleet.withStore { store in
        while try await store.counts()[.running] ?? 0 < count { try await Task.sleep(for: .milliseconds(50)) }
      }
      // Until the beginning is over, and how many connections are right is known.
      try await Task.sleep(for: .seconds(20))
      let (since, spent) = (Clocks.boottime(), try ProcessUse.cpuSeconds(of: worker))
      var (sizes, descriptors): ([Double], [Double]) = ([], [])
      for _ in 0..<20 {
        try await Task.sleep(for: .seconds(1))
        sizes.append(try ProcessUse.mebibytes("VmRSS", of: worker))
        descriptors.append(Double(try ProcessUse.descriptors(of: worker)))
      }
      let cpu = try ProcessUse.cpuSeconds(of: worker) - spent
      report.add("\(name): of a core", [100 * cpu / (Double(Clocks.boottime() - since) / 1e9)], "%")
      report.add("\(name): resident", sizes, "MiB")
      report.add("\(name): descriptors", descriptors, "")
      report.add("\(name): peak", [try ProcessUse.mebibytes("VmHWM", of: worker)], "MiB")
      report.atMost(20, "\(name): % of a core", report.median("\(name): of a core"))
      report.atMost(256, "\(name): MiB", report.median("\(name): resident"))
      report.atMost(1200, "\(name): descriptors", report.median("\(name): descriptors"))
      await fleet.stop()
      await origin.stop()
    }
    report.print(bench)
  }
}
