import Glibc
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// The promises about a worker's death and sleep with the lease that a fleet has by default, in seconds and bytes. They need a
/// quiet machine and minutes, so they run by hand and print their figures: see docs/operations.md.
@Suite(.serialized, .enabled(if: LongTests.areWanted)) struct DefaultLeaseTests {
  private static let size: Int64 = 500_000_000
  private static let rate: Int64 = 60_000_000
  private static let second: Int64 = 1_000_000

  /// Starts a fleet of two workers with a 500 MB download, which one of them has been running for a random time.
  private func start(
    _ number: Int, rate: Int64
  ) async throws -> (fleet: TestFleet, file: OriginFile, task: UniqueID, running: TaskDocument, owner: ChildProcess) {
    let fleet = try await TestFleet.start(workers: 2, leaseSeconds: 15)
    try await fleet.keepJournal()
    let file = OriginFile(seed: UInt64(number), size: Self.size)
    fleet.origin.serve("/film.mp4", file)
    let task = try await fleet.download("/film.mp4") { $0.rate = rate }
    let share = Int64.random(in: 0..<Self.size * 9 / 10)
    let running = try await fleet.wait(for: task, "its moment") { $0.state == .running && $0.bytesDone >= share }
    return (fleet, file, task, running, try #require(try await fleet.owner(of: task)))
  }

  private func expectWhole(_ fleet: TestFleet, _ task: UniqueID, _ file: OriginFile) async throws {
    try await fleet.wait(for: task, .succeeded)
    #expect(
      try digest(.sha256, of: TestFleet.contents(fleet.path("/film.mp4"))) == file.content.sha256(size: Self.size))
    #expect(try await fleet.problemsOfEvents() == [])
    #expect(try await fleet.store.audit() == [])
  }

  /// Seconds from `then` (database clock) to the claim that followed `epoch`.
  private func takeOver(_ fleet: TestFleet, _ task: UniqueID, from epoch: Int, since then: Int64) async throws -> Double
  {
    try await fleet.wait(for: task, "a take-over") { $0.epoch > epoch && $0.state != .queued }
    let takeOver = try #require(try await fleet.takeOver(of: task, from: epoch))
    #expect(takeOver.claimedAt >= takeOver.leaseUntil)
    return Double(takeOver.claimedAt - then) / Double(Self.second)
  }

  @Test("with the default lease, a killed worker's task is taken over within 16 s", arguments: 1...10) func kill(
    _ number: Int
  ) async throws {
    let (fleet, file, task, running, owner) = try await start(number, rate: Self.rate)
    let killed = try await fleet.databaseTime()
    owner.kill(SIGKILL)
    let seconds = try await takeOver(fleet, task, from: running.epoch, since: killed)
    try await expectWhole(fleet, task, file)
    let again = fleet.origin.bytesSentAgain("/film.mp4")
    print("kill \(number): at \(running.bytesDone) bytes, take-over after \(seconds) s, \(again) bytes sent again")
    #expect(seconds <= 16)
    #expect(again <= max(64 << 20, 2 * Self.rate))
    await fleet.stop()
  }

  /// A worker sleeps: longer than the lease, or shorter than the lease but longer than about two thirds of it.
  @Test(
    "with the default lease, a worker that sleeps too long loses its task and stays harmless",
    arguments: [30, 14, 12, 10, 8]) func sleep(_ seconds: Int) async throws
  {
    let (fleet, file, task, running, owner) = try await start(100 + seconds, rate: 20_000_000)
    let slept = try await fleet.databaseTime()
    owner.kill(SIGSTOP)
    try await fleet.loop.sleep(for: .seconds(seconds))
    let before = try await fleet.store.task(task)
    owner.kill(SIGCONT)
    if seconds > 10 {
      let after = try await takeOver(fleet, task, from: running.epoch, since: slept)
      print("sleep of \(seconds) s: take-over after \(after) s")
      #expect(after <= 16)
    }
    try await expectWhole(fleet, task, file)
    let done = try #require(try await fleet.store.task(task))
    let again = fleet.origin.bytesSentAgain("/film.mp4")
    print("sleep of \(seconds) s: epoch \(running.epoch), then \(done.epoch), \(again) bytes sent again")
    if seconds > 16 { #expect(done.epoch == before?.epoch, "the woken worker took the task back") }
    #expect(again <= max(64 << 20, 2 * Self.rate))
    await fleet.stop()
  }
}
