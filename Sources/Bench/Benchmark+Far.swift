import Glibc
import LocalFleet
import ReelhaulSystem

extension Benchmark {
  /// A server that gives each connection little, as distance, loss and many content networks do.
  static let far = Benchmark(
    name: "far", summary: "512 MiB at 8 MiB a second and connection, against aria2 -x16 and curl"
  ) { bench in
    let origin = try await BenchOrigin.start([("film.mp4", 512 << 20)], rate: 8 << 20)
    let peers = try TemporaryDirectory(prefix: "reelhaul-bench")
    var ours: [Double] = []
    var theirs: [Double] = []
    var curl: [Double] = []
    for run in 0..<11 {
      // A worker that knows nothing of the server.
      let fleet = try await BenchFleet.start(bench, workers: 1)
      let a = try await BenchCommandLine.time {
        try await fleet.run(["download", origin.url("film.mp4"), "--wait"])
      }
      await fleet.stop()
      let b = try await BenchCommandLine.time {
        try await BenchCommandLine.run(
          "aria2c", ["-q", "-x", "16", "-s", "16", "-d", peers.path, origin.url("film.mp4")])
      }
      unlink("\(peers.path)/film.mp4")
      // The first one warms up.
      guard run > 0 else { continue }
      ours.append(a)
      theirs.append(b)
      // It takes long, and is the same each time.
      guard run <= 2 else { continue }
      curl.append(
        try await BenchCommandLine.time {
          try await BenchCommandLine.run("curl", ["-s", "-o", "\(peers.path)/film.mp4", origin.url("film.mp4")])
        })
      unlink("\(peers.path)/film.mp4")
    }
    await origin.stop()
    var report = BenchReport("far")
    report.add("reelhaul, SHA-256 and fdatasync", ours, "s")
    report.add("aria2c -x16", theirs, "s")
    report.add("curl -o", curl, "s")
    let ratios = zip(ours, theirs).map { $0 / $1 }
    report.add("ratio to aria2c", ratios, "")
    report.atMost(1.0, "ratio, median", report.median("ratio to aria2c"))
    report.atMost(1.2, "ratio, worst", ratios.max() ?? .nan)
    report.print(bench)
  }
}
