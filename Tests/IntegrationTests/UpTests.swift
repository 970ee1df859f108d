import Glibc
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

/// Starts and stops `reelhaul up` repeatedly with the same directory.
@Suite struct UpTests {
  /// `output`: the file for its output and its sentences. Calls `opened` once it has opened that.
  private func start(
    _ directory: TemporaryDirectory, workers: Int = 1, output: String? = nil, opened: () -> Void = {}
  ) async throws -> ChildProcess {
    let data = "\(directory.path)/data"
    // Removes the file of a killed `up`. The new `up` writes it again when it is ready.
    unlink("\(data)/reelhaul.env")
    var options = ChildProcess.Options()
    options.stdout = output ?? "\(directory.path)/up.log"
    options.stderr = options.stdout
    // A setting for another broker than its own.
    options.environment = ["REELHAUL_KAFKA_SECURITY_PROTOCOL": "SSL"]
    // As a supervisor does that ignores the ends of its children, and allows few open files if nobody asks for more.
    let script = #"ulimit -Sn 1000; exec env --ignore-signal=CHLD "$0" "$@""#
    let words = ["-c", script, TestFleet.binary, "up", "--workers", "\(workers)", "--data-dir", data]
    let process = try ChildProcess("sh", words, options)
    opened()
    try await eventually("the fleet is ready", every: .milliseconds(50)) {
      let log = try output == nil ? TestFleet.contents("\(directory.path)/up.log") : []
      try #require(process.status == nil, "\(String(decoding: log, as: UTF8.self))")
      return access("\(data)/reelhaul.env", F_OK) == 0
    }
    return process
  }

  private func run(
    _ directory: TemporaryDirectory, _ arguments: [String], withErrors: Bool = false
  ) async throws -> (ReelhaulSystem.ExitStatus, String) {
    var options = ChildProcess.Options()
    options.environment = ["REELHAUL_CONFIG": "\(directory.path)/data/reelhaul.env"]
    options.stdout = "\(directory.path)/run.log"
    if withErrors { options.stderr = options.stdout }
    unlink("\(directory.path)/run.log")
    let status = await (try ChildProcess(TestFleet.binary, arguments, options)).wait()
    return (status, String(decoding: try TestFleet.contents("\(directory.path)/run.log"), as: UTF8.self))
  }

  /// The URL of the fleet's database.
  private func postgres(_ directory: TemporaryDirectory) throws -> String {
    let settings = String(decoding: try TestFleet.contents("\(directory.path)/data/reelhaul.env"), as: UTF8.self)
    return String(try #require(settings.firstMatch(of: /REELHAUL_POSTGRES=['"]?([^'"\n]+)/)?.1, "\(settings)"))
  }

  /// No worker would start with them, and nobody reads the workers' logs.
  @Test("up reports mistakes in the workers' settings before it starts any worker")
  func mistakesInWorkerSettingsAreReported() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-up")
    chmod(directory.path, 0o755)
    var options = ChildProcess.Options()
    options.environment = [
      "REELHAUL_RATE": "much", "REELHAUL_CONCURENCY": "9", "REELHAUL_ALLOW_NETWORKS": "10.0.0.0/8",
    ]
    options.stdout = "\(directory.path)/up.log"
    options.stderr = options.stdout
    let up = try ChildProcess(TestFleet.binary, ["up", "--data-dir", "\(directory.path)/data"], options)
    #expect(await up.wait() == .exited(2))
    let log = String(decoding: try TestFleet.contents("\(directory.path)/up.log"), as: UTF8.self)
    for words in [
      "REELHAUL_RATE must be", "did you mean REELHAUL_CONCURRENCY?", "ignores REELHAUL_ALLOW_NETWORKS.",
    ] {
      #expect(log.contains(words), "\(log)")
    }
  }

  @Test("up serves the dashboard and the state of its own fleet, and stops with it")
  func itServesTheDashboard() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul it's up")
    chmod(directory.path, 0o755)
    let up = try await start(directory)
    let log = String(decoding: try TestFleet.contents("\(directory.path)/up.log"), as: UTF8.self)
    let address = String(
      try #require(log.firstMatch(of: /The dashboard is at (http:\/\/127.0.0.1:[0-9]+\/)/)?.1, "\(log)"))
    // A shell reads the line that `up` prints.
    let line = try #require(log.split(separator: "\n").first { $0.hasPrefix("source ") }, "\(log)")
    let sourcing = try ChildProcess("bash", ["-c", "\(line) && [ \"$REELHAUL_API\" = '\(address)' ]"])
    #expect(await sourcing.wait() == .exited(0), "\(line)")
    func get(_ path: String) async throws -> String {
      var options = ChildProcess.Options()
      options.stdout = "\(directory.path)/get.log"
      unlink("\(directory.path)/get.log")
      _ = await (try ChildProcess("/usr/bin/curl", ["-sS", "-w", "%{http_code}", address + path], options)).wait()
      return String(decoding: try TestFleet.contents("\(directory.path)/get.log"), as: UTF8.self)
    }
    let (page, overview) = (try await get(""), try await get("v1/overview"))
    #expect(page.contains("<title>Reelhaul</title>") && page.hasSuffix("200"))
    #expect(overview.contains("\"workers\":1") && overview.hasSuffix("200"), "\(overview)")
    up.kill(SIGINT)
    #expect(await up.wait() == .exited(0))
    let after = try await get("healthz")
    #expect(after.hasSuffix("000"), "\(after)")
  }

  /// Its ports would belong to nobody.
  @Test("a second Ctrl-C ends up at once and removes reelhaul.env")
  func aSecondSignalLeavesNoSettingsOfAFleetThatIsGone() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-up")
    chmod(directory.path, 0o755)
    let up = try await start(directory)
    let (_, workers) = try await run(directory, ["workers", "--json"])
    let number = try #require(workers.firstMatch(of: /"pid":([0-9]+)/)?.1)
    let worker = try #require(Int32(number))
    let limits = String(decoding: try TestFleet.contents("/proc/\(worker)/limits"), as: UTF8.self)
    let files = try #require(limits.firstMatch(of: /Max open files +([0-9]+) +([0-9]+)/), "\(limits)")
    #expect(files.output.1 == files.output.2, "every connection and every staging file is one")
    // A command that this worker does not apply delays the drain.
    #expect(kill(worker, SIGSTOP) == 0)
    defer { kill(worker, SIGKILL) }
    #expect(try await run(directory, ["download", "http://127.0.0.1:9/a.mp4"]).0 == .exited(0))
    up.kill(SIGINT)
    try await eventually("it waits for the worker") {
      let log = try TestFleet.contents("\(directory.path)/up.log")
      return String(decoding: log, as: UTF8.self).contains("Waiting for workers")
    }
    #expect(access("\(directory.path)/data/reelhaul.env", F_OK) == 0)
    up.kill(SIGINT)
    #expect(await up.wait() == .exited(128 + SIGINT))
    #expect(access("\(directory.path)/data/reelhaul.env", F_OK) != 0)
  }

  /// The development broker's own group would delay commands by 3 to 10 seconds each time.
  @Test("the first command to a fleet that is ready, and those after a worker was killed, are applied soon and once")
  func commandsAreAppliedSoon() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-up")
    chmod(directory.path, 0o755)
    let up = try await start(directory, workers: 2)
    // Enough for all partitions.
    let ids = (0..<300).map { _ in UniqueID.random() }
    /// Returns the time when they were sent.
    @discardableResult
    func send(_ lines: [String]) async throws -> Double {
      let path = "\(directory.path)/commands-\(UInt32.random(in: 0 ... .max))"
      try FileDescriptor.open(path, O_WRONLY | O_CREAT).write(lines.joined(separator: "\n"), at: 0)
      let (status, output) = try await run(directory, ["batch", path])
      #expect(status == .exited(0), "\(output)")
      return Double(Clocks.realtimeMicroseconds()) / 1e6
    }
    func count(_ state: String) async throws -> Int {
      let (_, list) = try await run(directory, ["list", "--state", state, "--json", "--limit", "10000"])
      return list.split(separator: #""state":"\#(state)""#).count - 1
    }
    try await PostgresPool.with(.patient(url: postgres(directory)), size: 1) { pool in
      // Every renewal, each 500 ms: on a machine that stands still the fleet does too.
      _ = try await pool.withConnection {
        try await $0.script(
          """
          create table beat (worker int, at timestamptz default clock_timestamp());
          create function beat() returns trigger language plpgsql as $$
          begin
            insert into beat (worker) values (new.id);
            return null;
          end $$;
          create trigger beat after update of lease_until on worker for each row execute function beat();
          """)
      }
    }
    let first = try await send(ids.map { #"{"id":"\#($0)","kind":"noop","source":"noop://host/x","paused":true}"# })
    try await eventually("the first commands are applied") { try await count("paused") == ids.count }
    let (_, workers) = try await run(directory, ["workers", "--json"])
    let number = try #require(workers.firstMatch(of: /"pid":([0-9]+)/)?.1)
    #expect(kill(try #require(Int32(number)), SIGKILL) == 0)
    try await send(ids.map { #"{"command":"prioritize","taskId":"\#($0)","priority":7}"# })
    let last = try await send(ids.map { #"{"command":"resume","taskId":"\#($0)"}"# })
    try await eventually("all run") { try await count("succeeded") == ids.count }
    // What the database says, because to ask the program for the list takes a while on a busy machine.
    let beats = try await PostgresPool.with(.patient(url: postgres(directory)), size: 1) { pool in
      let spans = PostgresStatement(
        """
        select (select coalesce(max(n), 0) from (
                  select count(*) n from beat where at between to_timestamp(span.sent) and span.applied group by worker) b)
          from (values (1, $1::float8, (select max(created_at) from task)),
                       (2, $2, (select max(at) from task_history where type = 'resumed'))) span (number, sent, applied)
         order by number
        """)
      return try await pool.query(spans, .double(first), .double(last)).values { try $0.int64() }
    }
    #expect(beats[0] <= 4, "the first commands are applied late")
    #expect(beats[1] <= 8, "the killed worker's share is applied late by the other")
    let (_, list) = try await run(directory, ["list", "--json", "--limit", "10000"])
    #expect(list.split(separator: #""priority":7,"#).count - 1 == ids.count)
    #expect(list.split(separator: #""epoch":1,"#).count - 1 == ids.count, "each has run once")
    up.kill(SIGINT)
    #expect(await up.wait() == .exited(0))
  }

  /// As with `up 2>&1 | tee log`: a Ctrl-C ends `tee`, too.
  @Test("a second fleet with a broker of its own does not start on the database of a running one")
  func secondFleet() async throws {
    let (directory, other) = (try TemporaryDirectory(prefix: "reelhaul-up"), try TemporaryDirectory())
    chmod(directory.path, 0o755)
    let fleet = try await start(directory)
    let arguments = [
      "up", "--workers", "1", "--data-dir", "\(other.path)/data", "--postgres", try postgres(directory),
    ]
    let (status, text) = try await run(directory, arguments, withErrors: true)
    #expect(status == .exited(1) && text.contains("uses this database with another broker"), "\(text)")
    fleet.kill(SIGTERM)
    #expect(await fleet.wait() == .exited(0))
  }

  /// It may be the directory below a disk that is not mounted.
  @Test("up does not mark a root again that has lost its mark, and migrate does if it is said to be a new volume")
  func lostMark() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-up")
    chmod(directory.path, 0o755)
    let up = try await start(directory)
    let delete = ["delete", "storage://default/a.mp4", "--wait"]
    #expect(try await run(directory, delete).0 == .exited(0))
    up.kill(SIGINT)
    #expect(await up.wait() == .exited(0))
    let mark = "\(directory.path)/data/storage/default/.reelhaul"
    #expect(rename(mark, "\(directory.path)/mark") == 0)
    let next = try await start(directory)
    let log = String(decoding: try TestFleet.contents("\(directory.path)/up.log"), as: UTF8.self)
    #expect(log.contains("has no mark, but tasks have used this storage") && access(mark, F_OK) != 0, "\(log)")
    #expect(try await run(directory, ["migrate"]).0 == .exited(1))
    #expect(try await run(directory, ["migrate", "--new-volume", "default"]).0 == .exited(0))
    #expect(try await run(directory, delete).0 == .exited(0))
    next.kill(SIGINT)
    #expect(await next.wait() == .exited(0))
  }

  @Test("up runs and stops in order even if the reader of its output is gone")
  func aLostReaderEndsNoFleet() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-up")
    chmod(directory.path, 0o755)
    let pipe = "\(directory.path)/pipe"
    #expect(mkfifo(pipe, 0o600) == 0)
    let reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    let up = try await start(directory, output: pipe) { close(reader) }
    #expect(try await run(directory, ["download", "http://127.0.0.1:9/a.mp4"]).0 == .exited(0))
    up.kill(SIGINT)
    #expect(await up.wait() == .exited(0))
    #expect(access("\(directory.path)/data/reelhaul.env", F_OK) != 0)
  }

  @Test("up continues with its data, and applies the sent commands before it stops the development broker")
  func goesOnWhereItWas() async throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-up")
    chmod(directory.path, 0o755)
    let origin = try OriginServer()
    origin.serve("/a.mp4", OriginFile(seed: 9, size: 500_000))
    let first = try await start(directory)
    let (status, _) = try await run(directory, ["download", origin.url("/a.mp4"), "--wait"])
    #expect(status == .exited(0))
    let file = try TestFleet.contents("\(directory.path)/data/reelhaul.env")
    #expect(String(decoding: file, as: UTF8.self).contains("export REELHAUL_KAFKA_SECURITY_PROTOCOL=''\n"))
    // When the broker ends, it forgets commands that workers have not applied.
    let lines = (0..<5000).map { #"{"kind":"noop","source":"noop://host/\#($0)","paused":true}"# }
    let noops = try FileDescriptor.open("\(directory.path)/noops", O_WRONLY | O_CREAT)
    try noops.write(lines.joined(separator: "\n"), at: 0)
    #expect(try await run(directory, ["batch", "\(directory.path)/noops"]).0 == .exited(0))
    first.kill(SIGTERM)
    #expect(await first.wait() == .exited(0))
    #expect(access("\(directory.path)/data/reelhaul.env", F_OK) != 0, "the settings of a fleet that is gone")
    let log = String(decoding: try TestFleet.contents("\(directory.path)/up.log"), as: UTF8.self)
    #expect(log.contains("continues from here.\n"), "\(log)")
    #expect(log.contains("ignores REELHAUL_KAFKA_SECURITY_PROTOCOL."), "\(log)")
    let second = try await start(directory)
    let (_, paused) = try await run(directory, ["list", "--state", "paused", "--json", "--limit", "10000"])
    #expect(paused.split(separator: #""state":"paused""#).count - 1 == lines.count)
    let (_, list) = try await run(directory, ["list", "--state", "succeeded", "--json"])
    #expect(list.contains("\"state\":\"succeeded\""))
    // Even after a kill of all processes, the next start works.
    second.kill(SIGKILL)
    _ = await second.wait()
    let third = try await start(directory)
    // SIGHUP comes twice when a terminal is closed: from the kernel and from the shell.
    third.kill(SIGHUP)
    third.kill(SIGHUP)
    #expect(await third.wait() == .exited(0))
    let fourth = try await start(directory)
    fourth.kill(SIGINT)
    #expect(await fourth.wait() == .exited(0))
    origin.close()
  }
}
