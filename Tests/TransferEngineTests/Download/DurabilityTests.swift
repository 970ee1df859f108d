import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing
import TransferEngine

/// A power cut destroys all bytes that are not synced. All recorded bytes must still exist after it.
@Suite struct DurabilityTests {
  private static let size: Int64 = 2 << 20

  /// The checkpoints of a run, each with the bytes of its file that were on stable storage at that moment.
  private final class Records: Sendable {
    private let records = Lock<[(checkpoint: DownloadCheckpoint, stable: ByteRanges)]>([])

    func ledger(_ disk: DiskWatch) -> RecordingLedger {
      RecordingLedger { [self] checkpoint in
        let stable = disk.stable(checkpoint.stagingName)
        records.withLock { $0.append((checkpoint, stable)) }
      }
    }

    var all: [(checkpoint: DownloadCheckpoint, stable: ByteRanges)] { records.withLock { $0 } }

    /// The checkpoints of which a power cut would have destroyed bytes.
    var ahead: [DownloadCheckpoint] {
      all.filter { !$0.checkpoint.done.subtracting($0.stable).isEmpty }.map(\.checkpoint)
    }
  }

  @Test("bytes that are written while a sync runs are not recorded with it")
  func writesDuringSync() async throws {
    try await DownloadHarness.run {
      $0.syncBytes = 64 << 10
      // All bytes may arrive while the first sync runs.
      $0.exposure = .seconds(3600)
    } _: { harness in
      let file = OriginFile(seed: 70, size: Self.size)
      harness.origin.serve(DownloadHarness.path, file)
      try await DiskWatch.run(below: harness.directory.path) { disk in
        let records = Records()
        disk.holdSyncs()
        let spec = harness.spec()
        async let outcome = harness.run(spec, ledger: records.ledger(disk))
        try await eventually("everything is written while the first sync runs") {
          try harness.stagedNames.first.map { disk.heldSyncs > 0 && disk.written($0).count == Self.size } ?? false
        }
        disk.releaseSyncs()
        #expect(await outcome == .succeeded(sha256: file.sha256, bytes: Self.size))
        #expect(records.all.count >= 2)
        #expect(records.ahead == [])
      }
    }
  }

  @Test("every range is on stable storage before it is recorded", arguments: [true, false])
  func recordsAreBehindTheDisk(hashes: Bool) async throws {
    try await DownloadHarness.run {
      $0.syncBytes = 128 << 10
      $0.hashes = hashes
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 71, size: Self.size))
      try await DiskWatch.run(below: harness.directory.path) { disk in
        let records = Records()
        _ = await harness.run(harness.spec(), ledger: records.ledger(disk))
        #expect(records.all.contains { $0.checkpoint.publishing == nil }, "progress is recorded")
        #expect(records.all.last?.checkpoint.publishing != nil)
        #expect(records.ahead == [])
        try #expect(harness.published != nil)
      }
    }
  }

  /// A full pool of thin volumes, or a quota of a file server, fails a sync: the kernel drops the bytes, and says so once.
  @Test("what a sync has lost is not recorded by the next one, nor published", arguments: [ENOSPC, EDQUOT, EIO])
  func lostBytes(errno: Int32) async throws {
    try await DownloadHarness.run {
      $0.syncBytes = 128 << 10
    } _: { harness in
      let file = OriginFile(seed: 73, size: Self.size)
      harness.origin.serve(DownloadHarness.path, file)
      let gate = harness.origin.hold(DownloadHarness.path, from: 1 << 20)
      try await DiskWatch.run(below: harness.directory.path) { disk in
        let records = Records()
        let ledger = records.ledger(disk)
        let spec = harness.spec()
        let task = Task { await harness.run(spec, ledger: ledger) }
        await gate.reached()
        // What the second run goes on from. Without it that run would find a staging file of its own name, which no owner of
        // a task does.
        try await eventually("something is recorded") { ledger.last != nil }
        disk.failNextSync(errno)
        gate.open()
        let outcome = await task.value
        #expect(outcome.failure != nil, "\(outcome)")
        #expect(records.ahead == [])
        #expect(
          await harness.run(spec, from: ledger.last, ledger: ledger)
            == .succeeded(sha256: file.sha256, bytes: Self.size))
        #expect(records.ahead == [])
        let name = try #require(ledger.last?.stagingName)
        #expect(disk.stable(name).count + disk.stable("film.mp4").count >= Self.size, "\(disk.steps)")
      }
    }
  }

  @Test("a run that is stopped records only what is on stable storage")
  func stoppedRun() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 72, size: Self.size))
      let gate = harness.origin.hold(DownloadHarness.path, from: 1 << 20)
      try await DiskWatch.run(below: harness.directory.path) { disk in
        let records = Records()
        let ledger = records.ledger(disk)
        let task = Task { await harness.run(harness.spec(), ledger: ledger) }
        await gate.reached()
        try await eventually("something is written") {
          try harness.stagedNames.first.map { disk.written($0).count >= 128 << 10 } ?? false
        }
        task.cancel()
        #expect(await task.value == .stopped)
        #expect(ledger.last?.done.isEmpty == false)
        #expect(records.ahead == [])
      }
    }
  }

  @Test("a run that stands still records at once what it has, and once", arguments: [Self.size, 100_000])
  func stalledRun(size: Int64) async throws {
    try await DownloadHarness.run {
      $0.syncInterval = .seconds(3600)
    } _: { harness in
      let file = OriginFile(seed: 76, size: size)
      harness.origin.serve(DownloadHarness.path, file)
      let gate = harness.origin.hold(DownloadHarness.path, from: size - 10_000)
      try await DiskWatch.run(below: harness.directory.path) { disk in
        let records = Records()
        let ledger = records.ledger(disk)
        let task = Task { await harness.run(harness.spec(), ledger: ledger) }
        await gate.reached()
        // Also the bytes that were only gathered in memory.
        try await eventually("all bytes before the stall are recorded") {
          ledger.last.map { $0.done.contains(0..<size - 10_000) } ?? false
        }
        let count = ledger.checkpoints.count
        try await Task.sleep(for: .seconds(1))
        #expect(ledger.checkpoints.count == count)
        #expect(records.ahead == [])
        gate.open()
        #expect(await task.value == .succeeded(sha256: file.sha256, bytes: size))
      }
    }
  }

  @Test("a run that its limit holds back is not one that stands still")
  func limitedRun() async throws {
    try await DownloadHarness.run {
      $0.syncInterval = .seconds(3600)
    } _: { harness in
      let file = OriginFile(seed: 77, size: 200_000)
      harness.origin.serve(DownloadHarness.path, file)
      let ledger = RecordingLedger()
      let outcome = await harness.run(harness.spec { $0.rate = 64 << 10 }, ledger: ledger)
      #expect(outcome == .succeeded(sha256: file.sha256, bytes: file.size))
      #expect(ledger.checkpoints.allSatisfy { $0.publishing != nil })
    }
  }

  @Test("a run that has lost its task writes nothing more to its file")
  func formerOwner() async throws {
    try await DownloadHarness.run { harness in
      let held: Int64 = 1 << 20
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 75, size: Self.size))
      let gate = harness.origin.hold(DownloadHarness.path, from: held)
      try await DiskWatch.run(below: harness.directory.path) { disk in
        let ledger = RecordingLedger()
        let task = Task { await harness.run(harness.spec(), ledger: ledger) }
        await gate.reached()
        try await eventually("something is written") {
          try harness.stagedNames.first.map { disk.written($0).count >= 128 << 10 } ?? false
        }
        let name = try #require(harness.stagedNames.first)
        ledger.revoke()
        gate.open()
        #expect(await task.value == .stopped)
        #expect(disk.written(name).subtracting(ByteRanges(0..<held)).isEmpty, "what came later is not written")
      }
    }
  }

  @Test("a published file is synced before its name changes, and its directory after it")
  func publishedName() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 73, size: 300_000))
      try await DiskWatch.run(below: harness.directory.path) { disk in
        _ = await harness.run(harness.spec())
        let steps = disk.steps
        let rename = try #require(steps.firstIndex(of: .renamed(to: "in/film.mp4")))
        #expect(
          steps[..<rename].contains {
            if case .synced(let path) = $0 { path.hasPrefix(".reelhaul/staging/") } else { false }
          })
        #expect(steps[..<rename].contains(.synced("")), "the name of the new directory is durable")
        #expect(steps[rename...].contains(.synced("in")))
      }
    }
  }

  @Test("a finished file that a new owner finds has its name synced before the task has succeeded")
  func adoptedName() async throws {
    try await DownloadHarness.run { harness in
      let file = OriginFile(seed: 74, size: 300_000)
      harness.origin.serve(DownloadHarness.path, file)
      let spec = harness.spec()
      let ledger = RecordingLedger()
      _ = await harness.run(spec, ledger: ledger)
      #expect(ledger.last?.publishing != nil)
      await DiskWatch.run(below: harness.directory.path) { disk in
        // The state after the first owner has died right after the rename.
        let outcome = await harness.run(spec, from: ledger.last)
        #expect(outcome == .succeeded(sha256: file.sha256, bytes: file.size))
        #expect(disk.steps.contains(.synced("in")))
      }
    }
  }
}
