import Digest
import Glibc
import System
import TaskCore
import TaskStore
import TestKit
import Testing

/// The death, the freezing and the return of workers in mid-transfer.
@Suite(.serialized) struct KillTests {
  private static let size: Int64 = 500_000_000
  private static let checkpointBytes: Int64 = 64 << 20
  /// What the origin has sent and the worker has not received when it stops: the socket buffers of four connections
  /// that a rate limit keeps full.
  private static let inFlight: Int64 = 4 * (8 << 20)

  /// One 500 MB download whose worker is killed ten times, at random moments.
  @Test func aDownloadSurvivesTenKills() async throws {
    let fleet = try await TestFleet.start(workers: 2)
    let file = OriginFile(seed: 1, size: Self.size)
    fleet.origin.serve("/film.mp4", file)
    let rate: Int64 = 60_000_000
    let task = try await fleet.download("/film.mp4") { $0.rate = rate }
    var random = SystemRandomNumberGenerator()
    for kill in 1...10 {
      let running = try await fleet.wait(for: task, "being run the \(kill). time") { $0.state == .running }
      try await fleet.loop.sleep(for: .milliseconds(Int.random(in: 50...700, using: &random)))
      let recorded = try #require(try await fleet.store.task(task))
      guard recorded.state == .running, let owner = try await fleet.owner(of: task) else { break }
      owner.kill(SIGKILL)
      let killed = Clocks.boottime()
      _ = await owner.wait()
      try fleet.startWorker()
      let taken = try await fleet.wait(for: task, "a take-over") { $0.epoch > running.epoch && $0.state == .running }
      let seconds = Double(Clocks.boottime() - killed) / 1e9
      #expect(seconds <= 3 + 1 + 0.5, "take-over \(kill) after \(seconds) s")
      #expect(taken.bytesDone <= Self.size)
    }
    try await fleet.wait(for: task, .succeeded, within: .seconds(90))
    #expect(
      try digest(.sha256, of: TestFleet.contents(fleet.path("/film.mp4"))) == file.content.sha256(size: Self.size))
    let again = fleet.origin.bytesSentAgain("/film.mp4")
    #expect(again <= 10 * (max(Self.checkpointBytes, 2 * rate) + Self.inFlight), "\(again) bytes were fetched again")
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
  }

  /// What one kill may cost, measured exactly: at most 64 MiB, or 2 s of bytes.
  @Test func oneKillCostsLittle() async throws {
    let fleet = try await TestFleet.start(workers: 2)
    let size: Int64 = 300_000_000
    let rate: Int64 = 40_000_000
    let file = OriginFile(seed: 2, size: size)
    fleet.origin.serve("/one.mp4", file)
    let task = try await fleet.download("/one.mp4") { $0.rate = rate }
    try await fleet.wait(for: task, "a third done") { $0.bytesDone > size / 3 }
    let owner = try #require(try await fleet.owner(of: task))
    owner.kill(SIGKILL)
    try await fleet.wait(for: task, .succeeded, within: .seconds(90))
    let again = fleet.origin.bytesSentAgain("/one.mp4")
    #expect(again <= max(Self.checkpointBytes, 2 * rate) + Self.inFlight, "\(again) bytes were fetched again")
    #expect(try digest(.sha256, of: TestFleet.contents(fleet.path("/one.mp4"))) == file.content.sha256(size: size))
    await fleet.stop()
  }

  /// A worker that sleeps past its lease wakes up to find its task taken, and changes nothing.
  @Test func aFrozenWorkerComesBackHarmless() async throws {
    let fleet = try await TestFleet.start(workers: 2)
    let size: Int64 = 200_000_000
    let file = OriginFile(seed: 3, size: size)
    fleet.origin.serve("/frozen.mp4", file)
    let task = try await fleet.download("/frozen.mp4") { $0.rate = 25_000_000 }
    let first = try await fleet.wait(for: task, "some bytes") { $0.state == .running && $0.bytesDone > 20_000_000 }
    let frozen = try #require(try await fleet.owner(of: task))
    frozen.kill(SIGSTOP)
    let taken = try await fleet.wait(for: task, "a take-over") { $0.epoch > first.epoch && $0.state == .running }
    frozen.kill(SIGCONT)
    let done = try await fleet.wait(for: task, .succeeded, within: .seconds(60))
    #expect(done.epoch == taken.epoch, "the woken worker took the task back")
    #expect(done.worker == taken.worker)
    #expect(try digest(.sha256, of: TestFleet.contents(fleet.path("/frozen.mp4"))) == file.content.sha256(size: size))
    // The woken process is of use again, under a new identity.
    #expect(frozen.status == nil)
    let live = try await fleet.store.workers().filter(\.isLive)
    #expect(live.contains { $0.pid == frozen.pid && $0.id != first.worker })
    #expect(try await fleet.store.audit() == [])
    await fleet.stop()
  }

  @Test func aDrainedWorkerHandsBackAndExitsZero() async throws {
    let fleet = try await TestFleet.start(workers: 2)
    let size: Int64 = 150_000_000
    let file = OriginFile(seed: 4, size: size)
    fleet.origin.serve("/drain.mp4", file)
    let task = try await fleet.download("/drain.mp4") { $0.rate = 25_000_000 }
    let first = try await fleet.wait(for: task, "some bytes") { $0.state == .running && $0.bytesDone > 30_000_000 }
    let owner = try #require(try await fleet.owner(of: task))
    owner.kill(SIGTERM)
    #expect(await owner.wait() == .exited(0))
    let taken = try await fleet.wait(for: task, within: .seconds(2), "a take-over without waiting for the lease") {
      $0.epoch > first.epoch
    }
    #expect(taken.bytesDone >= first.bytesDone)
    try await fleet.wait(for: task, .succeeded)
    #expect(try digest(.sha256, of: TestFleet.contents(fleet.path("/drain.mp4"))) == file.content.sha256(size: size))
    #expect(fleet.origin.bytesSentAgain("/drain.mp4") <= Self.inFlight)
    await fleet.stop()
  }
}
