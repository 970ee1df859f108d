import LocalFleet
import ReelhaulSystem

extension Benchmark {
  /// Many downloads from as many slow servers must not wait for each other.
  static let hosts = Benchmark(
    name: "hosts", summary: "20 downloads of 100 MiB from 20 servers of 4 MiB a second each, at once"
  ) { bench in
    let (count, size, rate) = (20, 100 << 20, 4 << 20)
    let origin = try await BenchOrigin.start([("film.mp4", size)], rate: rate, hosts: count)
    let fleet = try await BenchFleet.start(bench, workers: 1)
    var times: [Double] = []
    for run in 0..<4 {
      let lines = "\(fleet.directory.path)/lines-\(run)"
      try TextFile.write(
        (1...count).map {
          """
          {"kind":"download","source":"\(origin.url("film.mp4", host: $0))",\
          "destination":"storage://default/\(run)/\($0).mp4","connections":1}\n
          """
        }.joined(), to: lines)
      let time = try await BenchCommandLine.time {
        try await fleet.run(["batch", lines])
        try await fleet.finished((run + 1) * count)
      }
      removeTree("\(fleet.directory.path)/data/storage/default/\(run)")
      if run > 0 { times.append(time) }
    }
    await fleet.stop()
    await origin.stop()
    var report = BenchReport("hosts")
    report.add("reelhaul, SHA-256 and fdatasync", times, "s")
    let least = Double(size) / Double(rate)
    report.add("what the rates allow", [least], "s")
    report.atMost(1.2, "ratio", report.median("reelhaul, SHA-256 and fdatasync") / least)
    report.print(bench)
  }
}
