import CommandLineKit
import ReelhaulSystem
import TaskCore
import TaskStore

extension Benchmark {
  /// Measures the memory of a worker: idle, with running transfers, with a backlog, and its peak.
  static let memory = Benchmark(
    name: "memory", summary: "A worker's resident memory: idle, with running transfers, with a backlog"
  ) { bench in
    let running = 32
    let origin = try await BenchOrigin.start([("film.mp4", 1 << 30)], rate: 8 << 20)
    let fleet = try await BenchFleet.start(bench, workers: 1, environment: ["REELHAUL_CONCURRENCY": String(running)])
    guard let worker = try await fleet.workers().first else { throw WorkError("there is no worker") }
    var report = BenchReport("memory")
    report.add("idle", [try ProcessUse.mebibytes("VmRSS", of: worker)], "MiB")
    var samples: [[Double]] = []
    for backlog in [0, 50_000] {
      let lines = "\(fleet.directory.path)/lines-\(backlog)"
      let count = running + backlog
      try TextFile.write(
        (0..<count).map {
          """
          {"kind":"download","source":"\(origin.url("film.mp4"))",\
          "destination":"storage://default/\(backlog)-\($0).mp4","rate":8388608}\n
          """
        }.joined(), to: lines)
      try await fleet.run(["batch", lines])
      try await fleet.withStore { store in
        while try await store.counts()[.running] ?? 0 < running { try await Task.sleep(for: .milliseconds(50)) }
      }
      var sizes: [Double] = []
      for _ in 0..<20 {
        try await Task.sleep(for: .milliseconds(250))
        sizes.append(try ProcessUse.mebibytes("VmRSS", of: worker))
      }
      samples.append(sizes)
    }
    report.add("\(running) running", samples[0], "MiB")
    report.add("\(running) running, 50,000 waiting", samples[1], "MiB")
    let peak = try ProcessUse.mebibytes("VmHWM", of: worker)
    report.add("peak", [peak], "MiB")
    report.atMost(64 + 2 * Double(running), "MiB at the peak", peak)
    await fleet.stop()
    await origin.stop()
    report.print(bench)
  }
}
