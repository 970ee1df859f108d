import CommandLineKit
import Glibc
import ReelhaulClient
import ReelhaulSystem
import TaskCore
import TransferEngine

extension Benchmark {
  /// Compares the transfer engine alone, without a store and without hashing, with curl.
  static let engine = Benchmark(
    name: "engine", summary: "2 GiB through the transfer engine alone, without hashing, against curl -o"
  ) { bench in
    let origin = try await BenchOrigin.start([("film.mp4", 2 << 30)])
    let directory = try TemporaryDirectory(prefix: "reelhaul-bench")
    let storage = Storage(roots: ["default": directory.path])
    try storage.initialise()
    var options = DownloadOptions()
    options.hashes = false
    let loop = EventLoop(name: "engine")
    let roots = StorageRoots(storage, loop: loop, settings: .init(permits: { _ in true }))
    let engine = DownloadEngine(roots: roots, options: options)
    var ours: [Double] = []
    var theirs: [Double] = []
    var synced: [Double] = []
    let target = "\(directory.path)/curl.mp4"
    for run in 0..<6 {
      let spec = TaskSpec(
        id: .make(), kind: .download, source: origin.url("film.mp4"), destination: "storage://default/film.mp4")
      let a = try await BenchCommandLine.time {
        guard case .succeeded = await engine.run(spec, from: nil, ledger: NoLedger()) else {
          throw WorkError("the engine did not download the file")
        }
      }
      unlink("\(directory.path)/film.mp4")
      let b = try await BenchCommandLine.time {
        try await BenchCommandLine.run("curl", ["-s", "-o", target, origin.url("film.mp4")])
      }
      let c = try await BenchCommandLine.time { try await BenchCommandLine.run("sync", [target]) }
      unlink(target)
      // The first run only warms up.
      if run > 0 {
        ours.append(a)
        theirs.append(b)
        synced.append(b + c)
      }
    }
    await roots.close()
    loop.shutdown()
    await origin.stop()
    var report = BenchReport("engine")
    report.add("reelhaul's engine", ours, "s")
    report.add("curl -o", theirs, "s")
    // Shows how much of the difference is the disk's work: the engine also writes its file to the disk.
    report.add("curl -o, then sync", synced, "s")
    report.atMost(1.1, "ratio", report.median("reelhaul's engine") / report.median("curl -o"))
    report.print(bench)
  }
}

/// Records nothing.
private struct NoLedger: DownloadLedger {
  let epoch = 1
  let mayWrite = true
  func checkpoint(_ checkpoint: DownloadCheckpoint, patience: Duration) async throws {}
  func progress(bytesDone: Int64, bytesTotal: Int64?) {}
  func pulse() {}
}
