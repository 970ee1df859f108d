import Glibc
import ReelhaulClient
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// The source is replaced by another file of the same size. The result is always the complete new file.
@Suite(.serialized) struct SourceSwapTests {
  private static let size: Int64 = 120_000_000

  private func withFleet(leaseSeconds: Int = 15, _ body: (TestFleet, OriginFile) async throws -> Void) async throws {
    let fleet = try await TestFleet.start(workers: 1, leaseSeconds: leaseSeconds)
    fleet.origin.serve("/video.mp4", OriginFile(seed: 10, size: Self.size))
    try await body(fleet, OriginFile(seed: 11, size: Self.size))
    await fleet.stop()
  }

  private func expectNewFile(_ fleet: TestFleet, _ task: UniqueID, _ file: OriginFile) async throws {
    let done = try await fleet.wait(for: task, .succeeded)
    // The first generation is 0.
    #expect(done.generation >= 1)
    let expected = file.content.sha256(size: Self.size)
    #expect(done.sha256 == expected)
    #expect(try digest(.sha256, of: TestFleet.contents(fleet.path("/video.mp4"))) == expected)
  }

  @Test("a source that changes during a pause gives the new file")
  func whileTheDownloadIsPaused() async throws {
    try await withFleet { fleet, new in
      let end = fleet.origin.hold("/video.mp4", from: Self.size / 2)
      let task = try await fleet.download("/video.mp4") { $0.rate = 30_000_000 }
      try await fleet.wait(for: task, "some bytes") { $0.state == .running && $0.bytesDone > 20_000_000 }
      try await fleet.client.pause(task)
      let paused = try await fleet.wait(for: task, .paused)
      #expect(paused.bytesDone > 0)
      end.open()
      fleet.origin.serve("/video.mp4", new)
      try await fleet.client.resume(task)
      try await expectNewFile(fleet, task, new)
    }
  }

  @Test("a source that changes while the worker is dead gives the new file")
  func whileItsWorkerIsDead() async throws {
    try await withFleet(leaseSeconds: 3) { fleet, new in
      let end = fleet.origin.hold("/video.mp4", from: Self.size * 3 / 4)
      let task = try await fleet.download("/video.mp4") { $0.rate = 30_000_000 }
      try await fleet.wait(for: task, "some bytes") { $0.state == .running && $0.bytesDone > 70_000_000 }
      let owner = try await fleet.waitForOwner(of: task)
      owner.kill(SIGKILL)
      _ = await owner.wait()
      end.open()
      fleet.origin.serve("/video.mp4", new)
      try fleet.startWorker()
      try await expectNewFile(fleet, task, new)
    }
  }

  @Test("a source that changes between two chunks gives one version, never a mix")
  func betweenTwoChunks() async throws {
    try await withFleet { fleet, new in
      let origin = fleet.origin
      // The file changes when its third request arrives: a few chunks are then from the old file.
      origin.script("/video.mp4") { request in
        if request.number == 3 { origin.serve("/video.mp4", new) }
        return []
      }
      let task = try await fleet.download("/video.mp4")
      let done = try await fleet.wait(for: task, .succeeded)
      let bytes = try TestFleet.contents(fleet.path("/video.mp4"))
      let old = OriginFile(seed: 10, size: Self.size).content.sha256(size: Self.size)
      let fresh = new.content.sha256(size: Self.size)
      let actual = digest(.sha256, of: bytes)
      #expect(actual == done.sha256)
      // The file is complete, whichever version it is. It is not the old version once the worker has seen a response of
      // the new one.
      let requests = origin.exchanges("/video.mp4").count
      #expect(requests >= 3 ? actual == fresh : actual == old)
    }
  }
}
