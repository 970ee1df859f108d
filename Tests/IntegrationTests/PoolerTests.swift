import Glibc
import ReelhaulClient
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// A whole fleet whose connections all go through PgBouncer in transaction mode.
@Suite(.serialized) struct PoolerTests {
  @Test(
    "a fleet works through PgBouncer in transaction mode, also after a worker is killed",
    arguments: PgBouncer.carriesPreparedStatements ? [false, true] : [false])
  func everythingWorks(prepared: Bool) async throws {
    let url = try await TestPostgres.shared.database()
    let bouncer = try await PgBouncer(before: try await TestPostgres.shared.server(), serverSessions: 5)
    let name = String(url[url.index(after: url.lastIndex(of: "/")!)...])
    let fleet = try await TestFleet.start(
      workers: 2, postgres: bouncer.url(database: name) + "?prepared_statements=\(prepared)",
      leaseSeconds: 3)
    let file = OriginFile(seed: 70, size: 80_000_000)
    fleet.origin.serve("/killed.mp4", file)
    fleet.origin.serve("/paused.mp4", file)
    fleet.origin.serve("/canceled.mp4", file)
    let ends = ["/killed.mp4", "/paused.mp4", "/canceled.mp4"].map { fleet.origin.hold($0, from: file.size / 2) }
    let killed = try await fleet.download("/killed.mp4") { $0.rate = 20_000_000 }
    let paused = try await fleet.download("/paused.mp4") { $0.rate = 10_000_000 }
    let canceled = try await fleet.download("/canceled.mp4") { $0.rate = 10_000_000 }
    let noops = (0..<500).map { _ in TaskSpec(id: .make(), kind: .noop, source: "noop://host/") }
    try await fleet.client.submit(noops)
    for task in [killed, paused, canceled] { try await fleet.wait(for: task, "bytes") { $0.bytesDone > 5_000_000 } }
    try await fleet.client.cancel(canceled)
    try await fleet.client.pause(paused)
    try await fleet.wait(for: paused, .paused)
    try await fleet.wait(for: canceled, .canceled)
    try await fleet.waitForOwner(of: killed).kill(SIGKILL)
    for end in ends { end.open() }
    try await fleet.client.resume(paused)
    for (task, path) in [(killed, "/killed.mp4"), (paused, "/paused.mp4")] {
      try await fleet.wait(for: task, .succeeded)
      #expect(try digest(.sha256, of: TestFleet.contents(fleet.path(path))) == file.content.sha256(size: file.size))
    }
    try await fleet.waitForSuccess(of: noops.map(\.id))
    let doctor = try await fleet.run(["doctor"])
    #expect(doctor.status == .exited(0), "\(doctor.output)")
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
    await bouncer.stop()
  }
}
