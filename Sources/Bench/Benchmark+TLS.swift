import CommandLineKit
import Glibc
import LocalFleet
import ReelhaulSystem

extension Benchmark {
  /// What encryption costs beside curl, in time and in CPU.
  static let tls = Benchmark(
    name: "tls", summary: "1 GiB over TLS through the whole fleet, against curl -o and sha256sum: time and CPU"
  ) { bench in
    let origin = try await BenchOrigin.start([("film.mp4", 1 << 30)], tls: true)
    let fleet = try await BenchFleet.start(
      bench, workers: 1, environment: ["REELHAUL_CA_FILE": origin.certificate])
    guard let worker = try await fleet.workers().first else { throw WorkError("there is no worker") }
    let target = "\(fleet.directory.path)/curl.mp4"
    var (ours, theirs): ([Double], [Double]) = ([], [])
    var (ourCPU, theirCPU): ([Double], [Double]) = ([], [])
    for run in 0..<6 {
      let name = "\(fleet.directory.path)/data/storage/default/film-\(run).mp4"
      let workerBefore = try ProcessUse.cpuSeconds(of: worker)
      let a = try await BenchCommandLine.time {
        try await fleet.run([
          "download", origin.url("film.mp4"), "--to", "storage://default/film-\(run).mp4", "--wait",
        ])
      }
      let workerSpent = try ProcessUse.cpuSeconds(of: worker) - workerBefore
      unlink(name)
      let childrenBefore = ProcessUse.cpuSecondsOfEndedChildren
      let b = try await BenchCommandLine.time {
        try await BenchCommandLine.run(
          "curl", ["-s", "--cacert", origin.certificate, "-o", target, origin.url("film.mp4")])
        try await BenchCommandLine.run("sha256sum", [target])
      }
      let childrenSpent = ProcessUse.cpuSecondsOfEndedChildren - childrenBefore
      unlink(target)
      // The first run only warms up.
      guard run > 0 else { continue }
      ours.append(a)
      theirs.append(b)
      ourCPU.append(workerSpent)
      theirCPU.append(childrenSpent)
    }
    await fleet.stop()
    await origin.stop()
    var report = BenchReport("tls")
    report.add("reelhaul, SHA-256 and fdatasync", ours, "s")
    report.add("curl -o, then sha256sum", theirs, "s")
    report.add("reelhaul, CPU of the worker", ourCPU, "s")
    report.add("curl and sha256sum, CPU", theirCPU, "s")
    report.add("ratio of the times", zip(ours, theirs).map { $0 / $1 }, "")
    report.add("ratio of the CPU", zip(ourCPU, theirCPU).map { $0 / $1 }, "")
    report.atMost(1.1, "ratio of the times", report.median("ratio of the times"))
    report.atMost(1.2, "ratio of the CPU", report.median("ratio of the CPU"))
    report.print(bench)
  }
}
