import Glibc
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Runs that end early and are continued, as after a pause or the death of a worker.
@Suite struct DownloadResumeTests {
  static let size: Int64 = 1_500_001
  static let file = OriginFile(seed: 31, size: size)
  static let other = OriginFile(seed: 32, size: size)

  /// Serves `file` but holds back its second half, runs until the first half is written, and cancels.
  private func half(
    _ harness: DownloadHarness, _ spec: TaskSpec, _ file: OriginFile = file
  ) async throws -> DownloadCheckpoint? {
    harness.origin.serve(DownloadHarness.path, file)
    let gate = OriginGate()
    harness.origin.script(DownloadHarness.path) { request in
      (request.range?.first ?? 0) >= 700_000 || request.range == nil ? [.hold(after: 50_000, gate)] : []
    }
    // If two versions cannot be distinguished, all bytes come in one response.
    let checkpoint = try await harness.interrupted(spec, at: gate, written: file.etag == nil ? 0 : 700_000)
    harness.origin.script(DownloadHarness.path) { _ in [] }
    return checkpoint
  }

  /// The bytes that a crash can lose stay bounded, even if the store or the disk is slow.
  @Test("slow recording slows the download, so that a crash costs a bounded number of bytes")
  func aSlowRecordHoldsUpWhatIsReceived() async throws {
    let bound: Int64 = 1 << 20
    let small: (inout HarnessOptions) -> Void = {
      $0.syncBytes = bound
      $0.exposure = .zero
    }
    try await DownloadHarness.run(small) { harness in
      let file = OriginFile(seed: 33, size: 60_000_000)
      harness.origin.serve(DownloadHarness.path, file)
      let (records, record) = AsyncStream.makeStream(of: Void.self)
      let ledger = RecordingLedger { _ in for await _ in records {} }
      async let outcome = harness.run(harness.spec(), ledger: ledger)
      // This is enough time for most of the file.
      try await Task.sleep(for: .seconds(1))
      // The bytes of the first sync, as many again, and the bytes in the buffers of the connections.
      #expect(ledger.progress.max() ?? 0 <= 3 * bound)
      record.finish()
      #expect(await outcome == .succeeded(sha256: file.content.sha256(size: file.size), bytes: file.size))
    }
  }

  @Test("a stopped run is continued without fetching recorded bytes again")
  func aStoppedRunIsGoneOnWith() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      #expect(checkpoint.done.count >= 500_000)
      #expect(checkpoint.tailCRC != nil)
      let before = harness.origin.exchanges(DownloadHarness.path).count
      let ledger = RecordingLedger()
      #expect(
        await harness.run(spec, from: checkpoint, ledger: ledger)
          == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
      #expect(ledger.last?.generation == checkpoint.generation)
      let later = harness.origin.exchanges(DownloadHarness.path)[before...]
      var again = ByteRanges()
      for exchange in later where exchange.sent.count > 1 { again.formUnion(exchange.sent) }
      #expect(again.intersection(checkpoint.done).isEmpty)
    }
  }

  /// An outage that sends a web page with a status of success: the recorded bytes are not given up for it.
  @Test("a web page in the middle of a download costs no recorded bytes")
  func aPageInTheMiddleCostsNothing() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      let page = OriginFault.answer(200, headers: [("Content-Type", "text/html")], body: "<html>back soon</html>")
      harness.origin.script(DownloadHarness.path) { _ in [page] }
      let ledger = RecordingLedger()
      #expect(await harness.run(spec, from: checkpoint, ledger: ledger).failure?.class == .retry)
      #expect(ledger.last?.generation ?? checkpoint.generation == checkpoint.generation)
      harness.origin.script(DownloadHarness.path) { _ in [] }
      let before = harness.origin.exchanges(DownloadHarness.path).count
      #expect(
        await harness.run(spec, from: ledger.last ?? checkpoint)
          == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      var again = ByteRanges()
      for exchange in harness.origin.exchanges(DownloadHarness.path)[before...] where exchange.sent.count > 1 {
        again.formUnion(exchange.sent)
      }
      #expect(again.intersection(checkpoint.done).isEmpty)
    }
  }

  /// One of several servers has a newer version, and then another server answers, or the run ends before.
  @Test("a source that has another version only for a moment costs no recorded bytes", arguments: [true, false])
  func aMomentOfAnotherVersionCostsNothing(endsThere: Bool) async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      var checkpoint = try #require(try await half(harness, spec))
      let before = harness.origin.exchanges(DownloadHarness.path).count
      harness.origin.script(DownloadHarness.path) {
        if $0.number == before + 1 { return [.header("ETag", "\"another\"")] }
        return endsThere ? [.answer(404)] : []
      }
      let ledger = RecordingLedger()
      var outcome = await harness.run(spec, from: checkpoint, ledger: ledger)
      if endsThere {
        #expect(outcome.failure?.code == .http(404))
        #expect(ledger.last == nil)
        let name = "\(harness.directory.path)/.reelhaul/staging/\(checkpoint.stagingName)"
        let kept = try FileDescriptor.open(name, O_RDONLY).size()
        #expect(kept == checkpoint.done.ranges.last?.upperBound, "and no room for the rest")
        harness.origin.script(DownloadHarness.path) { _ in [] }
        outcome = await harness.run(spec, from: checkpoint, ledger: ledger)
      }
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
      checkpoint = try #require(ledger.checkpoints.first)
      #expect(checkpoint.generation == 0 && checkpoint.done.count > 700_000)
      try #expect(harness.stagedNames.isEmpty)
    }
  }

  /// A server may announce any size, and a pause may be long.
  @Test("a stopped run gives back the space that it has not filled")
  func aStoppedRunHoldsNoSpace() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      let name = "\(harness.directory.path)/.reelhaul/staging/\(checkpoint.stagingName)"
      let size = try FileDescriptor.open(name, O_RDONLY).size()
      #expect(size == checkpoint.done.ranges.last?.upperBound)
      #expect(size < Self.size)
    }
  }

  /// With a weak tag no ranges can be combined, and the whole file comes chunked. The last answer announces a size.
  @Test("a size that not every answer tells is not another version")
  func aSizeThatIsNotAlwaysToldIsNoOther() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file.withWeakTagOnly())
      harness.origin.script(DownloadHarness.path) { $0.range == nil ? [.chunked] : [] }
      #expect(await harness.run(harness.spec()) == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      #expect(harness.origin.exchanges(DownloadHarness.path).count == 3)
    }
  }

  @Test("a replaced source is fetched from its start")
  func aReplacedSourceIsFetchedAnew() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      harness.origin.serve(DownloadHarness.path, Self.other)
      let ledger = RecordingLedger()
      let outcome = await harness.run(spec, from: checkpoint, ledger: ledger)
      #expect(outcome == .succeeded(sha256: Self.other.sha256, bytes: Self.size))
      try #expect(harness.published == Self.other.bytes)
      #expect((ledger.last?.generation ?? 0) > checkpoint.generation)
      try #expect(harness.stagedNames.isEmpty)
    }
  }

  /// An answer that curl, wget2 and others treat as "there is nothing left to fetch".
  @Test("a complete answer as long as the offset is not taken for the end of the file")
  func aWholeAnswerAsLongAsTheOffsetIsNotTheEnd() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      let offset = checkpoint.done.prefixEnd
      let before = harness.origin.exchanges(DownloadHarness.path).count
      harness.origin.script(DownloadHarness.path) { $0.number == before + 1 ? [.wholeOfLength(offset)] : [] }
      let outcome = await harness.run(spec, from: checkpoint)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
    }
  }

  @Test("without a validator the bytes are fetched again")
  func withoutAValidatorTheBytesAreFetchedAnew() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try await half(harness, spec, Self.file.withoutValidators())
      #expect(checkpoint == nil)
      harness.origin.serve(DownloadHarness.path, Self.other.withoutValidators())
      let outcome = await harness.run(spec, from: checkpoint)
      #expect(outcome == .succeeded(sha256: Self.other.sha256, bytes: Self.size))
      try #expect(harness.published == Self.other.bytes)
    }
  }

  @Test("a former owner creates no staging file")
  func aFormerOwnerMakesNoFile() async throws {
    try await DownloadHarness.run { harness in
      let ledger = RecordingLedger()
      ledger.revoke()
      #expect(await harness.run(harness.spec(), ledger: ledger) == .stopped)
      #expect(try harness.storage.volume("default").staged() == [])
      try #expect(harness.published == nil)
    }
  }

  @Test("single answers that ignore the range throw nothing away that is there") func singleWholeAnswers() async throws
  {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      harness.origin.script(DownloadHarness.path) { [2, 5, 8].contains($0.number) ? [.ignoresRange] : [] }
      let ledger = RecordingLedger()
      #expect(
        await harness.run(harness.spec { $0.connections = 1 }, ledger: ledger)
          == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      #expect(ledger.checkpoints.allSatisfy { $0.generation == 0 })
      #expect(harness.origin.exchanges(DownloadHarness.path).count > 8)
      #expect(harness.origin.exchanges(DownloadHarness.path).allSatisfy { $0.request["range"] != nil })
    }
  }

  @Test("a checkpoint without its staging file starts a new generation")
  func aCheckpointWithoutItsFileStartsAnew() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      let checkpoint = try #require(try await half(harness, spec))
      let volume = try harness.storage.volume("default")
      try volume.discard(try #require(StagingName(checkpoint.stagingName)))
      let ledger = RecordingLedger()
      let outcome = await harness.run(spec, from: checkpoint, ledger: ledger)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      #expect((ledger.last?.generation ?? 0) > checkpoint.generation)
    }
  }

  @Test("bytes that differ from the recorded checksum are fetched again")
  func bytesThatAreNotWhatWasRecordedAreFetchedAnew() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      var checkpoint = try #require(try await half(harness, spec))
      checkpoint.tailCRC = checkpoint.tailCRC.map { $0 &+ 1 }
      let ledger = RecordingLedger()
      let outcome = await harness.run(spec, from: checkpoint, ledger: ledger)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
      #expect((ledger.last?.generation ?? 0) > checkpoint.generation, "nothing of the old file is used")
    }
  }

  @Test("a task whose bytes are on another volume waits")
  func anotherVolumeIsWaitedFor() async throws {
    try await DownloadHarness.run { harness in
      let spec = harness.spec()
      var checkpoint = try #require(try await half(harness, spec))
      checkpoint.volume = UniqueID(high: 1, low: 2)
      #expect(await harness.run(spec, from: checkpoint).failure?.class == .wait)
    }
  }

  /// The root is moved away during a download. The download stops, and continues from its checkpoint once the root is
  /// back.
  @Test("a download whose root vanishes stops, and continues when the root is back", arguments: [false, true])
  func aVolumeThatVanishesIsWaitedFor(isReplaced: Bool) async throws {
    try await DownloadHarness.run {
      $0.syncBytes = 200_000
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let gate = OriginGate()
      harness.origin.script(DownloadHarness.path) { ($0.range?.first ?? 0) >= 700_000 ? [.hold(after: 0, gate)] : [] }
      let (root, away) = (harness.directory.path, harness.directory.path + ".away")
      let (recorded, told) = AsyncStream.makeStream(of: Void.self)
      let ledger = RecordingLedger { _ in told.yield() }
      let spec = harness.spec()
      let run = Task { await harness.run(spec, ledger: ledger) }
      await gate.reached()
      for await _ in recorded { break }
      #expect(rename(root, away) == 0)
      if isReplaced { try Volume.initialise(name: "default", path: root) }
      let before = ledger.checkpoints.count
      gate.open()
      let failure = await run.value.failure
      #expect(failure?.code == .storageVolumeGone && failure?.class == .wait, "\(String(describing: failure))")
      #expect(ledger.checkpoints.count <= before + 1, "at most the checkpoint that was under way")
      if isReplaced {
        #expect(await harness.run(spec, from: ledger.last).failure?.code == .storageVolumeGone)
        try #expect(harness.stagedNames.isEmpty)
        removeTree(root)
      }
      #expect(rename(away, root) == 0)
      #expect(await harness.run(spec, from: ledger.last) == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
    }
  }

  @Test("a source that is swapped during a run is noticed")
  func aSwapWhileARunGoesOnIsSeen() async throws {
    try await DownloadHarness.run { harness in
      let origin = harness.origin
      origin.serve(DownloadHarness.path, Self.file)
      origin.script(DownloadHarness.path) { request in
        if request.number == 3 { origin.serve(DownloadHarness.path, Self.other) }
        return []
      }
      let outcome = await harness.run(harness.spec())
      #expect(outcome == .succeeded(sha256: Self.other.sha256, bytes: Self.size))
      try #expect(harness.published == Self.other.bytes)
    }
  }

  /// The bytes of a single response cannot be used until they are complete and verified.
  @Test("a part of a response without ranges is not kept")
  func aPartOfOneResponseIsNotKept() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file.with { $0.acceptsRanges = false })
      let gate = harness.origin.hold(DownloadHarness.path, from: 700_000)
      try #expect(await harness.interrupted(harness.spec(), at: gate, written: 600_000) == nil)
      try #expect(harness.stagedNames.isEmpty)
    }
  }

  /// It was frozen, and its task given to another worker, which begins with nothing.
  @Test("a new owner's staging file is another one than that of an owner that goes on")
  func everyOwnerHasItsOwnFile() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let (gate, isFormer) = (OriginGate(), Lock(true))
      harness.origin.script(DownloadHarness.path) {
        isFormer.withLock { $0 } && $0.number >= 3 ? [.hold(after: 0, gate)] : []
      }
      let (former, present) = (RecordingLedger(), RecordingLedger())
      let spec = harness.spec()
      let task = Task { await harness.run(spec, ledger: former) }
      await gate.reached()
      try await eventually("the former owner has a staging file") { try !harness.stagedNames.isEmpty }
      isFormer.withLock { $0 = false }
      let outcome = await harness.run(spec, ledger: present)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      former.revoke()
      gate.open()
      #expect(await task.value == .stopped)
      try #expect(harness.published == Self.file.bytes)
    }
  }

  @Test("a run that is canceled before it begins stops")
  func aRunCanceledBeforeItBeginsEnds() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let spec = harness.spec()
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return await harness.run(spec)
      }
      #expect(await task.value == .stopped)
      try #expect(harness.published == nil)
    }
  }

  @Test("written bytes are recorded during the run")
  func writtenBytesAreRecordedDuringTheRun() async throws {
    try await DownloadHarness.run {
      $0.syncBytes = 200_000
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let ledger = RecordingLedger()
      _ = await harness.run(harness.spec(), ledger: ledger)
      let checkpoints = ledger.checkpoints
      #expect(checkpoints.count > 1)
      for (earlier, later) in zip(checkpoints, checkpoints.dropFirst()) {
        #expect(earlier.done.subtracting(later.done).isEmpty)
      }
    }
  }
}
