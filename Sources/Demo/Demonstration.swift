import CommandLineKit
import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore

/// Downloads twelve films from a local origin, while one worker is killed, one task is paused and one is canceled.
package struct Demonstration {
  private static let limit: Duration = .seconds(300)
  private static let interval: Duration = .milliseconds(200)
  /// Bytes per second of each connection: slow enough that the films take some seconds and parallel ranges help.
  private static let rate = 6 << 20

  private let fleet: LocalFleet
  private let kafka: KafkaConfiguration
  private let console: Console
  private let stage: any DemoStage
  private let keepsFilms: Bool
  private let directory: String
  /// A different directory for every run, so that a demo can be repeated on the same fleet.
  private let place: String

  /// `kafka`: the fleet's broker. `keepsFilms`: whether the downloaded films stay in the fleet's storage.
  package init(
    _ fleet: LocalFleet, kafka: KafkaConfiguration, console: Console, stage: any DemoStage, keepsFilms: Bool
  ) {
    self.fleet = fleet
    self.kafka = kafka
    self.console = console
    self.stage = stage
    self.keepsFilms = keepsFilms
    directory = "\(fleet.layout.root)/demo"
    place = "demo-\(Clocks.realtimeMicroseconds() / 1_000_000)"
  }

  /// Returns whether every result is as expected.
  package func play() async throws -> Bool {
    for path in [directory, "\(directory)/films", "\(directory)/origin"] { mkdir(path, 0o755) }
    let footage = DemoFootage(directory: "\(directory)/films", log: "\(directory)/ffmpeg.log")
    try await footage.make(DemoFilm.all) { console.note($0) }
    let origin = try await startOrigin(serving: footage.directory)
    do {
      let run = try await download(from: origin)
      await origin.close()
      let log = try TextFile.read(origin.accessLog, limit: 64 << 20)
      return try await report(run, footage, sent: OriginLog.sent(log))
    } catch {
      await origin.close()
      throw error
    }
  }

  private func startOrigin(serving films: String) async throws -> NginxOrigin {
    do {
      return try await NginxOrigin.start(serving: films, files: "\(directory)/origin", rate: Self.rate)
    } catch let error as SystemError {
      throw WorkError("\(error)", hint: "The demo's origin is nginx: apt-get install nginx-light.")
    }
  }

  // MARK: Downloading

  private func download(from origin: NginxOrigin) async throws -> DemoRun {
    let specs = DemoFilm.all.map { spec(of: $0, origin) }
    let client = try ReelhaulClient(
      kafka, topicPrefix: fleet.environment["REELHAUL_TOPIC_PREFIX"] ?? "", source: "/reelhaul/demo")
    let postgres = try PostgresConfiguration(url: fleet.environment["REELHAUL_POSTGRES"] ?? "")
    defer { stage.end() }
    return try await PostgresPool.with(postgres) { pool in
      var run = DemoRun(
        films: Dictionary(uniqueKeysWithValues: zip(specs.map(\.id), DemoFilm.all)), fleet: fleet, client: client,
        store: PostgresStore(pool: pool), stage: stage)
      try await client.submit(specs)
      try await run.play(within: Self.limit, every: Self.interval)
      await client.close()
      return run
    }
  }

  private func spec(of film: DemoFilm, _ origin: NginxOrigin) -> TaskSpec {
    TaskSpec(
      id: .make(), kind: .download, source: origin.url("/\(film.fileName)"),
      destination: "storage://default/\(place)/\(film.fileName)", labels: ["title": film.fileName])
  }

  // MARK: Judging

  private func report(_ run: DemoRun, _ footage: DemoFootage, sent: [String: Int64]) async throws -> Bool {
    console.note("Comparing every file with the origin's…")
    let pool = BlockingPool(name: "digest", threads: 2)
    defer { pool.shutdown() }
    var lines: [DemoReport.Line] = []
    for task in run.documents {
      guard let film = run.films[task.spec.id],
        let original = try await FileDigest.of(footage.path(of: film), on: pool)
      else { continue }
      let file = try await FileDigest.of("\(fleet.layout.storage)/\(place)/\(film.fileName)", on: pool)
      lines.append(
        DemoReport.Line(
          film: film, task: task, originSize: original.size, originSHA256: original.sha256, fileSHA256: file?.sha256,
          sent: sent[film.fileName] ?? 0, workers: run.workers[task.spec.id] ?? []))
    }
    if !keepsFilms { removeTree("\(fleet.layout.storage)/\(place)") }
    var complaints = run.script.complaints + run.script.missing
    if lines.count < DemoFilm.all.count { complaints.append("not every task is there") }
    let report = DemoReport(lines: lines, complaints: complaints)
    console.output.line()
    console.print(report.table)
    console.output.line()
    for complaint in complaints { console.output.line("WRONG: \(complaint)") }
    for line in console.terminal.wrap(DemoReport.legend) { console.output.line(line) }
    console.output.line(report.isGood ? "Every line holds." : "Not every line holds.")
    return report.isGood
  }
}
