import Glibc
import LocalFleet
import ReelhaulClient
import ReelhaulDigest
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// A living worker cannot reach the database: it is frozen or cut off, or the database hangs. It stops by itself before
/// another worker takes its task, comes back as a new worker, and changes nothing of its former tasks.
@Suite(.serialized) struct LossOfContactTests {
  enum Loss: CaseIterable {
    /// SIGSTOP for the worker.
    case frozen
    /// Packets between the worker and the database are dropped, while the origin still serves.
    case cutOff
    /// SIGSTOP for the worker's sessions of PostgreSQL.
    case hungSessions
  }

  /// A busy machine may delay a worker. The lease is so long that the delay is shorter than the time between the fence,
  /// at two thirds of the lease, and the end of the lease.
  private static let leaseSeconds = 12
  private static let rate: Int64 = 12_000_000
  /// More bytes than a worker fetches during a whole lease.
  private static let size: Int64 = 200_000_000
  private static let role = "lost"
  /// The bytes that a worker writes without a transfer, for its log: far fewer than a transfer would write.
  private static let noise = 2 << 20

  /// Somebody changes a table for longer than a lease. Calls that wait for it must not cost the lease.
  @Test("a table that is locked for longer than a lease costs no lease")
  func aLockedTableCostsNoLease() async throws {
    let fleet = try await TestFleet.start(workers: 1, leaseSeconds: Self.leaseSeconds)
    // Some tasks end meanwhile. The call that records this waits while it has their runs locked.
    var tasks: [UniqueID] = []
    var ends: [OriginGate] = []
    for megabytes in [Int64(3), 4, 5, 15] {
      fleet.origin.serve("/\(megabytes).mp4", OriginFile(seed: 4, size: megabytes * 1_000_000))
      ends.append(fleet.origin.hold("/\(megabytes).mp4", from: (megabytes - 1) * 1_000_000))
      tasks.append(try await fleet.download("/\(megabytes).mp4") { $0.rate = 1_000_000 })
    }
    for task in tasks { try await fleet.wait(for: task, "some bytes") { $0.state == .running && $0.bytesDone > 0 } }
    // And some can be claimed meanwhile.
    try await fleet.store.setLimit(.kind, name: "noop", to: 0)
    let held = TaskSpec(id: .make(), kind: .noop, source: "noop://host/")
    try await fleet.client.submit(held)
    try await fleet.wait(for: held.id, .queued)
    try await fleet.pool.withConnection { connection in
      _ = try await connection.script("begin; lock table task in access exclusive mode")
      for end in ends { end.open() }
      try await fleet.store.setLimit(.kind, name: "noop", to: nil)
      // Each command is a call that waits.
      for _ in 0..<20 {
        try await fleet.client.submit(TaskSpec(id: .make(), kind: .noop, source: "noop://host/"))
      }
      _ = try await connection.script("select pg_sleep(\(Self.leaseSeconds + 1)); commit")
    }
    for task in tasks + [held.id] { #expect(try await fleet.wait(for: task, .succeeded).epoch == 1) }
    await fleet.stop()
  }

  /// A worker without a lease must leave the group, because the commands on its partitions would wait for it.
  @Test("a worker that is cut off from PostgreSQL leaves its commands to others", .enabled(if: TestKafka.isAvailable))
  func aWorkerCutOffLeavesItsCommandsToOthers() async throws {
    let kafka = try await TestKafka.shared()
    let fleet = try await TestFleet.start(workers: 0, broker: .running(kafka.bootstrap), leaseSeconds: 6)
    let proxy = try CuttingProxy(to: UInt16(try await TestPostgres.shared.server().port))
    let cutOff = try await fleet.startWorker(named: "cut_off", through: proxy)
    try fleet.startWorker()
    func assignments(of worker: Int) -> Int {
      fleet.logs().split(separator: "--- worker ")[worker].split(separator: "\n").count {
        $0.contains("partitions assigned")
      }
    }
    try await fleet.eventually("both have a share") { assignments(of: 0) > 0 && assignments(of: 1) > 0 }
    proxy.setSilent(true)
    func runNoops() async throws {
      let specs = (0..<100).map { TaskSpec(id: .make(), kind: .noop, source: "noop://host-\($0)/") }
      try await fleet.client.submit(specs)
      try await fleet.waitForSuccess(of: specs.map(\.id))
    }
    try await runNoops()
    let before = assignments(of: 0)
    proxy.setSilent(false)
    try await fleet.eventually("it has a share again") { assignments(of: 0) > before }
    try await runNoops()
    #expect(cutOff.status == nil)
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
    proxy.close()
  }

  @Test("a worker that loses contact stops in time and is harmless when it comes back", arguments: Loss.allCases)
  func stopsInTimeAndComesBackHarmless(_ loss: Loss) async throws {
    let fleet = try await TestFleet.start(workers: 0, leaseSeconds: Self.leaseSeconds)
    try await fleet.keepJournal()
    let proxy = try CuttingProxy(to: UInt16(try await TestPostgres.shared.server().port))
    let worker = try await fleet.startWorker(named: Self.role, through: proxy)
    let file = OriginFile(seed: 3, size: Self.size)
    fleet.origin.serve("/film.mp4", file)
    let end = fleet.origin.hold("/film.mp4", from: Self.size - 1_000_000)
    let task = try await fleet.download("/film.mp4") { $0.rate = Self.rate }
    let first = try await fleet.wait(for: task, "some bytes") { $0.state == .running && $0.bytesDone > 10_000_000 }
    let boot = try #require(first.worker)
    try fleet.startWorker()

    var stopped: [pid_t] = []
    switch loss {
    case .frozen: worker.kill(SIGSTOP)
    case .cutOff: proxy.setSilent(true)
    case .hungSessions: stopped = try await stopSessions()
    }
    defer { for session in stopped { kill(session, SIGCONT) } }
    // A little more than two thirds of the lease are over.
    try await fleet.eventually("the lease is nearly over") {
      let lease = try await fleet.pool.query(
        PostgresStatement(
          "select extract(epoch from lease_until - clock_timestamp())::float8 from worker where boot = '\(boot)'"))
      // A worker whose lease is over is deleted.
      return try lease.isEmpty || lease[0].double(0) < 0.5
    }
    let atFence = try bytesWritten(by: worker)
    let taken = try await fleet.wait(for: task, "a take-over") { $0.epoch > first.epoch && $0.state == .running }
    let takeOver = try #require(try await fleet.takeOver(of: task, from: first.epoch))
    #expect(takeOver.claimedAt >= takeOver.leaseUntil)
    #expect(takeOver.renewals <= TakeOver.prompt)
    let before = try await fleet.journal().count

    switch loss {
    case .frozen: worker.kill(SIGCONT)
    case .cutOff: proxy.setSilent(false)
    case .hungSessions:
      for session in stopped { kill(session, SIGCONT) }
      try await TestPostgres.shared.asSuperuser { try await $0.script("alter role \(Self.role) login") }
    }
    end.open()
    let done = try await fleet.wait(for: task, .succeeded)
    #expect(done.epoch == taken.epoch && done.worker == taken.worker, "the task was taken back")
    #expect(
      try digest(.sha256, of: TestFleet.contents(fleet.path("/film.mp4"))) == file.content.sha256(size: Self.size))
    // The process works again, as another worker.
    try await fleet.eventually("it comes back") {
      try await fleet.store.workers().contains { $0.isLive && $0.pid == worker.pid && $0.id != first.worker }
    }
    #expect(worker.status == nil)
    let changes = try await fleet.journal()[before...].filter { $0.role == Self.role && $0.task == task }
    #expect(changes.isEmpty, "\(changes)")
    let written = try bytesWritten(by: worker) - atFence
    #expect(written < Self.noise, "\(written) bytes were written behind the fence")
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
    proxy.close()
  }

  /// Stops the sessions of the worker at a moment when they hold no lock for which others wait.
  private func stopSessions() async throws -> [pid_t] {
    // The worker gets no new sessions.
    try await TestPostgres.shared.asSuperuser { try await $0.script("alter role \(Self.role) nologin") }
    while true {
      let pids = try await sessions("true")
      for pid in pids { kill(pid, SIGSTOP) }
      let busy = try await sessions("state <> 'idle'")
      if busy.isEmpty { return pids }
      for pid in pids { kill(pid, SIGCONT) }
    }
  }

  private func sessions(_ condition: String) async throws -> [pid_t] {
    let query = "select pid from pg_stat_activity where usename = '\(Self.role)' and \(condition)"
    return try await TestPostgres.shared.asSuperuser { connection in
      try await connection.query(PostgresStatement(query)).map { try $0.int32(0) }
    }
  }

  /// The bytes that the process has written with `write` and similar calls; bytes sent over sockets do not count.
  private func bytesWritten(by process: ChildProcess) throws -> Int {
    let file = try FileDescriptor.open("/proc/\(process.pid)/io", O_RDONLY)
    let text = try [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
      count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
    let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("wchar: ") }
    return try #require(line.flatMap { Int($0.dropFirst(7)) })
  }
}
