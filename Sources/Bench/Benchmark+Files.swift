import Glibc
import ReelhaulSystem
import TaskCore
import TaskStore

extension Benchmark {
  /// Compares one large file through the whole fleet with curl and sha256sum.
  static let largeFile = Benchmark(
    name: "large-file", summary: "2 GiB through the whole fleet, against curl -o and sha256sum"
  ) { bench in
    let origin = try await BenchOrigin.start([("film.mp4", 2 << 30)])
    let fleet = try await BenchFleet.start(bench, workers: 1)
    let target = "\(fleet.directory.path)/curl.mp4"
    var ours: [Double] = []
    var theirs: [Double] = []
    for run in 0..<6 {
      let name = "\(fleet.directory.path)/data/storage/default/film-\(run).mp4"
      let a = try await BenchCommandLine.time {
        try await fleet.run([
          "download", origin.url("film.mp4"), "--to", "storage://default/film-\(run).mp4", "--wait",
        ])
      }
      unlink(name)
      let b = try await BenchCommandLine.time {
        try await BenchCommandLine.run("curl", ["-s", "-o", target, origin.url("film.mp4")])
        try await BenchCommandLine.run("sha256sum", [target])
      }
      unlink(target)
      // The first run only warms up.
      if run > 0 {
        ours.append(a)
        theirs.append(b)
      }
    }
    await fleet.stop()
    await origin.stop()
    var report = BenchReport("large-file")
    report.add("reelhaul, SHA-256 and fdatasync", ours, "s")
    report.add("curl -o, then sha256sum", theirs, "s")
    report.atMost(
      1.5, "ratio", report.median("reelhaul, SHA-256 and fdatasync") / report.median("curl -o, then sha256sum"))
    report.print(bench)
  }

  /// Compares many small files, each a durable task, with aria2.
  static let smallFiles = Benchmark(
    name: "small-files", summary: "2,000 files of 64 KiB as 2,000 durable tasks, against aria2"
  ) { bench in
    let count = 2000
    let origin = try await BenchOrigin.start((0..<count).map { ("\($0).mp4", 64 << 10) })
    let fleet = try await BenchFleet.start(bench, workers: 1)
    let list = "\(fleet.directory.path)/list"
    try TextFile.write((0..<count).map { origin.url("\($0).mp4") + "\n" }.joined(), to: list)
    var ours: [Double] = []
    var theirs: [Double] = []
    for run in 0..<6 {
      let lines = "\(fleet.directory.path)/lines-\(run)"
      try TextFile.write(
        (0..<count).map {
          """
          {"kind":"download","source":"\(origin.url("\($0).mp4"))","destination":"storage://default/\(run)/\($0).mp4"}\n
          """
        }.joined(), to: lines)
      let a = try await BenchCommandLine.time {
        try await fleet.run(["batch", lines])
        try await fleet.finished((run + 1) * count)
      }
      // Nothing is removed before the end: without a journal, ext4 looks at every inode that was freed in the last minutes
      // before it takes another one.
      let folder = "\(fleet.directory.path)/aria2-\(run)"
      let b = try await BenchCommandLine.time {
        try await BenchCommandLine.run("aria2c", ["-q", "-j", "16", "-d", folder, "-i", list])
      }
      if run > 0 {
        ours.append(Double(count) / a)
        theirs.append(Double(count) / b)
      }
    }
    await fleet.stop()
    await origin.stop()
    var report = BenchReport("small-files")
    report.add("reelhaul", ours, "tasks/s")
    report.add("aria2c -j 16", theirs, "files/s")
    report.atLeast(1000, "tasks/s", report.median("reelhaul"))
    report.print(bench)
  }
}
