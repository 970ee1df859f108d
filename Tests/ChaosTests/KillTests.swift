import Glibc
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// The death of workers during transfers, and their orderly end.
@Suite(.serialized) struct KillTests {
  private static let checkpointBytes: Int64 = 64 << 20
  /// The bytes that the origin has sent and the worker has not received when it stops: the socket buffers of four
  /// connections, which a rate limit keeps full.
  private static let inFlight: Int64 = 4 * (8 << 20)

  /// One 500 MB download whose worker is killed ten times, at random moments.
  @Test("a download survives ten kills of its worker")
  func aDownloadSurvivesTenKills() async throws {
    let fleet = try await TestFleet.start(workers: 2, leaseSeconds: 3)
    try await fleet.keepJournal()
    let size: Int64 = 500_000_000
    let file = OriginFile(seed: 1, size: size)
    fleet.origin.serve("/film.mp4", file)
    let rate: Int64 = 60_000_000
    let end = fleet.origin.hold("/film.mp4", from: size - 1_000_000)
    let task = try await fleet.download("/film.mp4") { $0.rate = rate }
    for kill in 1...10 {
      let running = try await fleet.wait(for: task, "being run the \(kill). time") { $0.state == .running }
      try await fleet.loop.sleep(for: .milliseconds(Int.random(in: 50...700)))
      let owner = try await fleet.waitForOwner(of: task)
      owner.kill(SIGKILL)
      _ = await owner.wait()
      try fleet.startWorker()
      let taken = try await fleet.wait(for: task, "a take-over") { $0.epoch > running.epoch && $0.state == .running }
      #expect(taken.bytesDone <= size)
      let takeOver = try #require(try await fleet.takeOver(of: task, from: running.epoch))
      // The task is taken over when the lease is over, and at most a few sweeps later; a sweep comes within 600 ms.
      #expect(takeOver.claimedAt >= takeOver.leaseUntil)
      #expect(takeOver.renewals <= TakeOver.prompt, "take-over \(kill)")
    }
    end.open()
    try await fleet.wait(for: task, .succeeded)
    #expect(try digest(.sha256, of: TestFleet.contents(fleet.path("/film.mp4"))) == file.content.sha256(size: size))
    let again = fleet.origin.bytesSentAgain("/film.mp4")
    #expect(again <= 10 * (max(Self.checkpointBytes, 2 * rate) + Self.inFlight), "\(again) bytes were fetched again")
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
  }

  /// The bytes that one kill may cost, measured exactly: at most 64 MiB, or the bytes of 2 s.
  @Test("one kill costs at most 64 MiB or 2 s of bytes")
  func oneKillCostsLittle() async throws {
    let fleet = try await TestFleet.start(workers: 2, leaseSeconds: 6)
    let size: Int64 = 300_000_000
    let rate: Int64 = 40_000_000
    let file = OriginFile(seed: 2, size: size)
    fleet.origin.serve("/one.mp4", file)
    let end = fleet.origin.hold("/one.mp4", from: size * 5 / 6)
    let task = try await fleet.download("/one.mp4") { $0.rate = rate }
    try await fleet.wait(for: task, "a third done") { $0.bytesDone > size / 3 }
    let owner = try await fleet.waitForOwner(of: task)
    owner.kill(SIGKILL)
    end.open()
    try await fleet.wait(for: task, .succeeded)
    let again = fleet.origin.bytesSentAgain("/one.mp4")
    #expect(again <= max(Self.checkpointBytes, 2 * rate) + Self.inFlight, "\(again) bytes were fetched again")
    #expect(try digest(.sha256, of: TestFleet.contents(fleet.path("/one.mp4"))) == file.content.sha256(size: size))
    await fleet.stop()
  }

  @Test("a drained worker hands its task back and exits with 0")
  func aDrainedWorkerHandsBackAndExitsZero() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    try await fleet.keepJournal()
    let drained = try await fleet.startWorker(named: "drained")
    let size: Int64 = 150_000_000
    let file = OriginFile(seed: 4, size: size)
    fleet.origin.serve("/drain.mp4", file)
    let end = fleet.origin.hold("/drain.mp4", from: size * 5 / 6)
    let task = try await fleet.download("/drain.mp4") { $0.rate = 25_000_000 }
    let first = try await fleet.wait(for: task, "some bytes") { $0.state == .running && $0.bytesDone > 30_000_000 }
    try fleet.startWorker()
    drained.kill(SIGTERM)
    #expect(await drained.wait() == .exited(0))
    end.open()
    let taken = try await fleet.wait(for: task, "a take-over") { $0.epoch > first.epoch }
    #expect(taken.bytesDone >= first.bytesDone)
    try await fleet.wait(for: task, .succeeded)
    // The owner itself ended the run, not a sweep after the end of the lease.
    let ends = try await fleet.journal().filter { $0.change == "DELETE run" && $0.task == task }
    #expect(ends.first?.role == "drained")
    #expect(try digest(.sha256, of: TestFleet.contents(fleet.path("/drain.mp4"))) == file.content.sha256(size: size))
    #expect(fleet.origin.bytesSentAgain("/drain.mp4") <= Self.inFlight)
    await fleet.stop()
  }
}
