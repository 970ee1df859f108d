import Glibc
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// What commands do while a service does not answer, or takes no writes.
extension CommandLineTests {
  /// As a standby does, which an old address leads to after a failover.
  @Test("doctor and commands say that a database takes no writes")
  func aReadOnlyDatabaseIsTold() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let url = try #require(fleet.environment["REELHAUL_POSTGRES"])
    let readOnly = url + (url.contains("?") ? "&" : "?") + "options=-cdefault_transaction_read_only%3Don"
    let doctor = try await fleet.run(["doctor", "--json", "--postgres", readOnly])
    #expect(doctor.status == .exited(1), "\(doctor.output)")
    #expect(doctor.output.contains(#""check":"database","status":"failed""#), "\(doctor.output)")
    #expect(doctor.output.contains("takes no writes") && doctor.output.contains(#""check":"schema","status":"ok""#))
    #expect(try await fleet.run(["doctor", "--json"]).output.contains(#""check":"database","status":"ok""#))
    try await PostgresPool.with(.patient(url: url)) {
      _ = try await $0.query("REVOKE UPDATE ON worker FROM current_user")
    }
    let revoked = try await fleet.run(["doctor", "--json"])
    #expect(revoked.status == .exited(1) && revoked.output.contains(#""check":"database","status":"failed""#))
    #expect(revoked.output.contains("does not let this user write tasks"), "\(revoked.output)")
    for command in [["migrate"], ["limit", "total", "4"], ["pause", "--all"]] {
      let refused = try await fleet.run(command + ["--postgres", readOnly])
      #expect(refused.status == .exited(3), "\(refused.output)")
      #expect(refused.output.contains("PostgreSQL takes no writes"), "\(refused.output)")
      #expect(refused.output.contains("Name the primary server") && !refused.output.contains("Start it"))
    }
    await fleet.stop()
  }

  @Test("watch outlasts a restart of PostgreSQL, and says once that it waits")
  func watchOutlastsARestart() async throws {
    let postgres = try await RestartablePostgres()
    let fleet = try await TestFleet.start(workers: 0, postgres: postgres.url)
    var spec = TaskSpec(id: .make(), kind: .noop, source: "noop:", destination: nil)
    spec.paused = true
    _ = try await fleet.store.apply([.submit(spec)])
    let path = "\(fleet.scratch)/watch"
    var options = ChildProcess.Options()
    options.environment = fleet.environment
    options.stdout = path
    options.stderr = path
    let process = try ChildProcess(TestFleet.binary, ["watch", "--json", "\(spec.id)"], options)
    func output() throws -> String { String(decoding: try TestFleet.contents(path), as: UTF8.self) }
    try await fleet.eventually("it has begun") { try output().contains("paused") }
    await postgres.stop()
    try await fleet.eventually("it tells") { try output().contains("still waiting") }
    try await postgres.start()
    try await fleet.eventually("it is canceled") {
      try await fleet.store.apply([.control(.init(id: .make(), taskID: spec.id, action: .cancel))]).count == 1
    }
    #expect(await process.wait() == .exited(1))
    let told = try output()
    #expect(told.split(separator: "still waiting").count == 2 && !told.contains("error:"), "\(told)")
    await fleet.stop()
    await postgres.remove()
  }

  @Test("a command after one that no worker has applied yet is sent, and not refused for a state that is no more")
  func behindOthers() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let worker = try #require(fleet.running.first)
    let id = UniqueID.random()
    worker.kill(SIGSTOP)
    let submit = ["download", "http://127.0.0.1:9/a", "--paused", "--id", "\(id)"]
    #expect(try await fleet.run(submit).status == .exited(0))
    let canceled = try await fleet.run(["cancel", "\(id)"])
    #expect(canceled.status == .exited(0) && canceled.output.contains("there is no task \(id)"), "\(canceled.output)")
    worker.kill(SIGCONT)
    try await fleet.wait(for: id, .canceled)
    // At once again, as all are applied.
    #expect(try await fleet.run(["pause", "\(id)"]).status == .exited(5))
    await fleet.stop()
  }

  @Test("unreachable services are reported soon, with the likely cause")
  func unreachableServicesAreSaidSoon() async throws {
    var options = ChildProcess.Options()
    let directory = try TemporaryDirectory()
    options.stdout = "\(directory.path)/out"
    options.stderr = options.stdout
    options.environment = [
      "REELHAUL_KAFKA": "127.0.0.1:9", "REELHAUL_POSTGRES": "postgres://nobody@127.0.0.1:9/none",
      "REELHAUL_KAFKA_MESSAGE_TIMEOUT_MS": "2000",
    ]
    for arguments in [["list"], ["download", "https://example.org/a.mp4"], ["doctor"]] {
      let status = await (try ChildProcess(TestFleet.binary, arguments, options)).wait()
      let output = String(decoding: try TestFleet.contents("\(directory.path)/out"), as: UTF8.self)
      #expect(status == .exited(3), "\(arguments): \(output)")
      #expect(output.contains("source its reelhaul.env again"), "\(arguments): \(output)")
      let sentence = /Task ([0-9a-f-]{36}) may have been sent all the same: with --id ([0-9a-f-]{36}) it is not made/
      let ids = output.firstMatch(of: sentence).map { [$0.1, $0.2] } ?? []
      #expect(arguments[0] != "download" || Set(ids).count == 1, "\(output)")
    }
    unlink("\(directory.path)/out")
    let flag = ["list", "--postgres", "postgres://nobody@127.0.0.1:1/none"]
    #expect(await (try ChildProcess(TestFleet.binary, flag, options)).wait() == .exited(3))
    let output = String(decoding: try TestFleet.contents("\(directory.path)/out"), as: UTF8.self)
    #expect(!output.contains("reelhaul.env"), "its address is from no file: \(output)")
  }

  @Test("serve waits for PostgreSQL, but not for a database that does not exist")
  func serveWaitsForPostgres() async throws {
    let postgres = try await RestartablePostgres()
    let fleet = try await TestFleet.start(workers: 0, postgres: postgres.url)
    let absent = try await fleet.run(["serve", "--port", "0", "--postgres", "\(postgres.url)-absent"])
    #expect(absent.status == .exited(3) && absent.output.contains("3D000"), "\(absent.output)")
    await postgres.stop()
    try await fleet.serving { port in
      func readiness() throws -> String {
        let client = try RawClient(port: port)
        client.send("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return client.receive()
      }
      let unready = try readiness()
      #expect(unready.hasPrefix("HTTP/1.1 503 "), "\(unready)")
      try await postgres.start()
      try await fleet.eventually("it is ready") { try readiness().hasPrefix("HTTP/1.1 200 ") }
    }
    await fleet.stop()
    await postgres.remove()
  }
}
