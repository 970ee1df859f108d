import CommandLineKit
import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulKafka
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore

/// Downloads twelve films from a local origin, while one worker is killed, one task is paused and one is canceled. Two
/// films go to an S3 store, and another worker is killed during the upload.
package struct Demonstration {
  private static let limit: Duration = .seconds(300)
  private static let interval: Duration = .milliseconds(200)
  /// Bytes per second of each connection: slow enough that the films take some seconds and parallel ranges help.
  private static let rate = 6 << 20
  /// Bytes per second of the upload.
  private static let uploadRate: Int64 = 12 << 20

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
    for path in [directory, "\(directory)/films", "\(directory)/origin", "\(directory)/s3"] { mkdir(path, 0o755) }
    let footage = DemoFootage(directory: "\(directory)/films", log: "\(directory)/ffmpeg.log")
    try await footage.make(DemoFilm.all.filter { $0.kind != .upload }) { console.note($0) }
    let store = try await DemoStore.start(in: "\(directory)/s3", credentials: Self.credentials(fleet.layout))
    let origin = try await startOrigin(serving: footage.directory)
    do {
      let run = try await transfer(from: origin)
      await origin.close()
      let log = try TextFile.read(origin.accessLog, limit: 64 << 20)
      return try await report(run, footage, store, sent: OriginLog.sent(log))
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

  /// The workers' file of credentials. It names none before the store runs.
  package static func prepare(_ layout: FleetLayout) throws {
    mkdir("\(layout.root)/demo", 0o755)
    try TextFile.write("{}", to: credentials(layout), mode: 0o600)
  }

  package static func credentials(_ layout: FleetLayout) -> String { "\(layout.root)/demo/credentials.json" }

  // MARK: Transfers

  private func transfer(from origin: NginxOrigin) async throws -> DemoRun {
    var made: [TaskSpec] = []
    for film in DemoFilm.all {
      var spec = spec(of: film, origin)
      if film.kind == .upload {
        // The film must be there.
        spec.after = made.filter { $0.destination == spec.source }.map(\.id)
        spec.rate = Self.uploadRate
      }
      made.append(spec)
    }
    let specs = made
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
    let (file, isDownload) = ("storage://default/\(place)/\(film.fileName)", film.kind == .download)
    return TaskSpec(
      id: .make(), kind: film.kind, source: film.kind == .upload ? file : origin.url("/\(film.fileName)"),
      destination: isDownload ? file : "s3://\(DemoStore.bucket)/\(place)/\(film.fileName)",
      credential: isDownload ? nil : DemoStore.credential, labels: ["title": film.title])
  }

  // MARK: Judging

  private func report(
    _ run: DemoRun, _ footage: DemoFootage, _ store: DemoStore, sent: [String: Int64]
  ) async throws -> Bool {
    console.note("Comparing every file with the origin's…")
    let pool = BlockingPool(name: "digest", threads: 2)
    defer { pool.shutdown() }
    var lines: [DemoReport.Line] = []
    for task in run.documents {
      guard let film = run.films[task.spec.id],
        let original = try await FileDigest.of(footage.path(of: film), on: pool)
      else { continue }
      let path = "\(place)/\(film.fileName)"
      let file =
        film.kind == .download
        ? try await FileDigest.of("\(fleet.layout.storage)/\(path)", on: pool)?.sha256
        : try await store.sha256(of: path)
      lines.append(
        DemoReport.Line(
          film: film, task: task, originSize: original.size, originSHA256: original.sha256, fileSHA256: file,
          sent: film.kind == .upload ? nil : sent[film.fileName] ?? 0, workers: run.workers[task.spec.id] ?? []))
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
