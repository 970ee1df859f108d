import Glibc
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// The last step of a download: a verified file gets its name once, whatever happens on the way.
@Suite struct DownloadPublicationTests {
  static let size: Int64 = 1_500_001
  static let file = OriginFile(seed: 31, size: size)
  static let other = OriginFile(seed: 32, size: size)

  /// The first run died between recording and renaming. The second run renames only the verified file.
  @Test("an interrupted publication is finished only with the verified bytes", arguments: [false, true])
  func aRecordedPublishIsFinishedWithTheVerifiedBytesAlone(areOthers: Bool) async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      harness.origin.serve(DownloadHarness.path, Self.file)
      let checkpoint = try await harness.diedPublishing(spec)
      try #expect(harness.published == nil, "a file has no name before it is recorded that it gets one")
      let before = harness.origin.exchanges(DownloadHarness.path).count
      if areOthers {
        let volume = try harness.storage.volume("default")
        let file = try volume.adopt(try #require(StagingName(checkpoint.stagingName)), minimumSize: Self.size)
        try file.write("other bytes")
      }
      let outcome = await harness.run(spec, from: checkpoint)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
      #expect((harness.origin.exchanges(DownloadHarness.path).count > before) == areOthers)
      #expect(try harness.storage.volume("default").staged() == [])
    }
  }

  @Test("a crash while publishing is finished without another download", arguments: [false, true], [false, true])
  func aCrashWhilePublishingIsFinished(afterTheRename: Bool, acceptsRanges: Bool) async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      harness.origin.serve(DownloadHarness.path, Self.file.with { $0.acceptsRanges = acceptsRanges })
      let checkpoint: DownloadCheckpoint
      if afterTheRename {
        let ledger = RecordingLedger()
        _ = await harness.run(spec, ledger: ledger)
        checkpoint = try #require(ledger.last)
      } else {
        checkpoint = try await harness.diedPublishing(spec)
      }
      #expect(checkpoint.publishing != nil)
      let before = harness.origin.exchanges(DownloadHarness.path).count
      let outcome = await harness.run(spec, from: checkpoint)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
      #expect(harness.origin.exchanges(DownloadHarness.path).count == before)
    }
  }

  /// If something prevents the publication of a complete file, the file is published once the cause is gone, and is not
  /// fetched again.
  @Test("a failed publication is repeated without another download", arguments: [false, true])
  func aFailedPublishIsMadeUpFor(acceptsRanges: Bool) async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      harness.origin.serve(DownloadHarness.path, Self.file.with { $0.acceptsRanges = acceptsRanges })
      let obstacle = "\(harness.directory.path)/in"
      let ledger = RecordingLedger { if $0.publishing != nil { try write([], to: obstacle) } }
      #expect(await harness.run(spec, ledger: ledger).failure?.code == .destinationInvalid)
      let before = harness.origin.exchanges(DownloadHarness.path).count
      // The obstacle may stay as long as it likes.
      #expect(await harness.run(spec, from: ledger.last).failure?.code == .destinationInvalid)
      unlink(obstacle)
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
      try #expect(harness.stagedNames.isEmpty)
      #expect(harness.origin.exchanges(DownloadHarness.path).count == before)
    }
  }

  @Test("a published file that was removed is fetched again")
  func aPublishedFileThatIsGoneIsFetchedAnew() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      harness.origin.serve(DownloadHarness.path, Self.file)
      let ledger = RecordingLedger()
      _ = await harness.run(spec, ledger: ledger)
      unlink("\(harness.directory.path)/in/film.mp4")
      let checkpoint = try #require(ledger.last)
      let outcome = await harness.run(spec, from: checkpoint)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
    }
  }

  @Test("a task that was canceled after its file was published, and is retried, replaces its own file only")
  func itsOwnFileIsReplaced() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      harness.origin.serve(DownloadHarness.path, Self.file)
      _ = await harness.run(spec)
      harness.origin.serve(DownloadHarness.path, Self.other)
      let outcome = await harness.run(spec)
      #expect(outcome == .succeeded(sha256: Self.other.sha256, bytes: Self.other.size))
      try #expect(harness.published == Self.other.bytes)
      #expect(await harness.run(harness.spec { $0.id = .random() }).failure?.code == .destinationExists)
    }
  }

  @Test("a file of somebody else at the destination is not taken for the one that was about to be published")
  func aFileOfSomebodyElseIsNotAdopted() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      harness.origin.serve(DownloadHarness.path, Self.file)
      let ledger = RecordingLedger()
      _ = await harness.run(spec, ledger: ledger)
      #expect(ledger.last?.publishing != nil)
      // As if the first owner had died before the rename, and somebody else had been faster.
      let path = "\(harness.directory.path)/in/film.mp4"
      unlink(path)
      try write(Self.other.bytes, to: path)
      #expect(await harness.run(spec, from: ledger.last).failure?.code == .destinationExists)
      try #expect(harness.published == Self.other.bytes)
    }
  }

  /// A cancel before `publishing` is recorded stops the run. A later cancel is too late. File and outcome always agree.
  @Test("a cancel stops the run before publishing is recorded, and is too late afterwards", arguments: [false, true])
  func aCancelRacesThePublish(isTooLate: Bool) async throws {
    try await DownloadHarness.run {
      $0.syncBytes = 200_000
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let run = Lock<Task<DownloadOutcome, Never>?>(nil)
      let ledger = RecordingLedger { checkpoint in
        guard (checkpoint.publishing != nil) == isTooLate else { return }
        run.withLock { $0?.cancel() }
      }
      let spec = harness.spec()
      let outcome = await run.withLock { run in
        let task = Task { await harness.run(spec, ledger: ledger) }
        run = task
        return task
      }.value
      #expect(outcome == (isTooLate ? .succeeded(sha256: Self.file.sha256, bytes: Self.size) : .stopped))
      try #expect(harness.published == (isTooLate ? Self.file.bytes : nil))
      try #expect(harness.stagedNames.isEmpty == isTooLate)
    }
  }

  @Test("a run that has lost its task publishes nothing")
  func withoutOwnershipNothingIsPublished() async throws {
    try await DownloadHarness.run {
      // A run that stands still then records what it has, however slowly that came.
      $0.syncInterval = .seconds(3600)
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let gate = OriginGate()
      harness.origin.script(DownloadHarness.path) { $0.number >= 3 ? [.hold(after: 0, gate)] : [] }
      let revoked = Lock<RecordingLedger?>(nil)
      // During a checkpoint no other one is under way.
      let ledger = RecordingLedger { _ in revoked.withLock { $0?.revoke() } }
      revoked.withLock { $0 = ledger }
      let spec = harness.spec()
      let task = Task { await harness.run(spec, ledger: ledger) }
      try await eventually("it records what it has, and loses its task") { !ledger.mayWrite }
      gate.open()
      #expect(await task.value == .stopped)
      try #expect(harness.published == nil)
      #expect(ledger.checkpoints.count == 1)
    }
  }
}
