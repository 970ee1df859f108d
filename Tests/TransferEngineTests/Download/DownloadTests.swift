import Glibc
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Downloads from servers that behave correctly.
@Suite struct DownloadTests {
  @Test(
    "a file of any size arrives, is verified and leaves no staging file",
    arguments: [1, 1000, 128 << 10, (128 << 10) + 1, 3_000_001] as [Int64])
  func theFileArrives(size: Int64) async throws {
    try await DownloadHarness.run { harness in
      let file = OriginFile(seed: 3, size: size)
      harness.origin.serve(DownloadHarness.path, file)
      let ledger = RecordingLedger()
      let outcome = await harness.run(harness.spec(), ledger: ledger)
      #expect(outcome == .succeeded(sha256: file.sha256, bytes: size))
      try #expect(harness.published == file.bytes)
      try #expect(harness.stagedNames.isEmpty)
      #expect(ledger.last?.publishing?.sha256 == file.sha256)
      #expect(ledger.last?.done.count == size)
    }
  }

  @Test("an empty file arrives")
  func anEmptyFileArrives() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 3, size: 0))
      #expect(await harness.run(harness.spec()) == .succeeded(sha256: digest(.sha256, of: []), bytes: 0))
      try #expect(harness.published == [])
    }
  }

  @Test("no HEAD request is sent")
  func noHEADRequestIsSent() async throws {
    try await DownloadHarness.run { harness in
      let file = OriginFile(seed: 4, size: 500_000)
      harness.origin.serve(DownloadHarness.path, file)
      harness.origin.always(DownloadHarness.path, .headLength(17))
      #expect(await harness.run(harness.spec()) == .succeeded(sha256: file.sha256, bytes: file.size))
      #expect(harness.origin.exchanges(DownloadHarness.path).allSatisfy { $0.request.method == "GET" })
    }
  }

  @Test("a small file takes one request")
  func aSmallFileTakesOneRequest() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 4, size: 100_000))
      _ = await harness.run(harness.spec())
      #expect(harness.origin.exchanges(DownloadHarness.path).count == 1)
    }
  }

  @Test("a large file is fetched over several connections without content coding")
  func aLargeFileIsFetchedOverSeveralConnections() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 5, size: 4 << 20))
      let gate = OriginGate()
      harness.origin.script(DownloadHarness.path) { request in
        if request.number == 1 { return [.hold(after: 1000, gate)] }
        gate.open()
        return []
      }
      _ = await harness.run(harness.spec())
      let exchanges = harness.origin.exchanges(DownloadHarness.path)
      #expect(exchanges.contains { $0.request.inProgress > 1 })
      #expect(exchanges.allSatisfy { $0.request["accept-encoding"] == "identity" })
    }
  }

  @Test(
    "a run leaves nothing in memory, whatever its end",
    arguments: [[], [.answer(404)], [.cut(after: 100_000)]] as [[OriginFault]])
  func nothingOfARunIsLeftInMemory(faults: [OriginFault]) async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 9, size: 1_000_001))
      harness.origin.script(DownloadHarness.path) { _ in faults }
      weak var ledger: RecordingLedger?
      do {
        let held = RecordingLedger()
        ledger = held
        _ = await harness.run(harness.spec(), ledger: held)
      }
      try await eventually("the run is gone, and its ledger with it") { ledger == nil }
    }
  }

  /// Another request takes over the end of the first one before the staging file is open.
  @Test("bytes that arrive before the staging file is open are kept")
  func bytesBeforeTheFileIsOpenAreKept() async throws {
    try await DownloadHarness.run {
      $0.limits.firstChunk = 136 << 10
      $0.limits.chunks.grain = 1 << 10
      $0.limits.chunks.tailMilliseconds = 0
      // Holds less than the half that is left to the first request, and more than that without its last read.
      $0.writeBuffer = 67 << 10
    } _: { harness in
      let file = OriginFile(seed: 8, size: 137 << 10)
      harness.origin.serve(DownloadHarness.path, file)
      // The file is open once its space is reserved.
      let reserve = try FileDescriptor.open("\(harness.directory.path)/.reelhaul/reserve", O_RDWR | O_CREAT)
      #expect(try reserve.tryLock())
      let run = Task { await harness.run(harness.spec()) }
      _ = await harness.origin.first { $0.request.number == 2 }
      // Gives the bodies time to arrive.
      try await Task.sleep(for: .milliseconds(200))
      reserve.unlock()
      #expect(await run.value == .succeeded(sha256: file.sha256, bytes: file.size))
      try #expect(harness.published == file.bytes)
    }
  }

  @Test("files from servers without ranges or lengths are fetched in one response")
  func serversWithoutRangesOrLengthAreFetchedWhole() async throws {
    for change: @Sendable (inout OriginFile) -> Void in [{ $0.acceptsRanges = false }, { $0.tellsLength = false }] {
      try await DownloadHarness.run { harness in
        let file = OriginFile(seed: 6, size: 1_000_001).with(change)
        harness.origin.serve(DownloadHarness.path, file)
        #expect(await harness.run(harness.spec()) == .succeeded(sha256: file.sha256, bytes: file.size))
        try #expect(harness.published == file.bytes)
      }
    }
  }

  @Test("a source without a strong validator is fetched in one response")
  func sourcesWithoutStrongValidatorsAreFetchedInOneResponse() async throws {
    let file = OriginFile(seed: 7, size: 1_000_001)
    for file in [file.withoutValidators(), file.withWeakTagOnly()] {
      try await DownloadHarness.run { harness in
        harness.origin.serve(DownloadHarness.path, file)
        #expect(await harness.run(harness.spec()) == .succeeded(sha256: file.sha256, bytes: file.size))
        #expect(harness.origin.exchanges(DownloadHarness.path).contains { $0.request.range == nil })
      }
    }
  }

  @Test("a file without the expected digest is fetched twice and not published")
  func anExpectedDigestIsChecked() async throws {
    try await DownloadHarness.run { harness in
      let file = OriginFile(seed: 8, size: 300_000)
      harness.origin.serve(DownloadHarness.path, file)
      let wrong = harness.spec { $0.expect.sha256 = [UInt8](repeating: 1, count: 32) }
      let failure = try #require(await harness.run(wrong).failure)
      #expect(failure.code == .digestMismatch)
      let mismatch = try #require(DigestMismatch(wrong.expect, .init(sha256: file.sha256, md5: nil)))
      #expect(failure.message == "\(mismatch); the file was fetched twice")
      try #expect(harness.published == nil && harness.stagedNames.isEmpty)
      let right = harness.spec {
        $0.expect = Expectation(sha256: file.sha256, md5: digest(.md5, of: file.bytes), bytes: file.size)
      }
      #expect(await harness.run(right) == .succeeded(sha256: file.sha256, bytes: file.size))
    }
  }

  @Test("a file whose digest is wrong once is fetched again")
  func aDigestThatIsWrongOnceIsFetchedAgain() async throws {
    try await DownloadHarness.run { harness in
      let (wrong, right) = (OriginFile(seed: 9, size: 100_000), OriginFile(seed: 10, size: 100_000))
      let origin = harness.origin
      origin.serve(DownloadHarness.path, wrong)
      origin.script(DownloadHarness.path) { request in
        if request.number == 2 { origin.serve(DownloadHarness.path, right) }
        return request.number == 2 ? [.answer(503)] : []
      }
      let spec = harness.spec { $0.expect.sha256 = right.sha256 }
      #expect(await harness.run(spec) == .succeeded(sha256: right.sha256, bytes: right.size))
      try #expect(harness.published == right.bytes)
    }
  }

  @Test("a file without the expected size fails the task")
  func anExpectedSizeIsChecked() async throws {
    for ranges in [true, false] {
      try await DownloadHarness.run { harness in
        harness.origin.serve(
          DownloadHarness.path, OriginFile(seed: 8, size: 300_000).with { $0.acceptsRanges = ranges })
        let failure = await harness.run(harness.spec { $0.expect.bytes = 299_999 }).failure
        #expect(failure?.code == .sizeMismatch)
        #expect(failure?.class == .fail)
      }
    }
  }

  /// Nothing is written if the announced length is wrong. If the length becomes known only at the end, no more bytes
  /// than expected are written.
  @Test(
    "the expected size is checked before a byte is written",
    arguments: [(299_999, true), (300_001, true), (299_999, false), (300_001, false)] as [(Int64, Bool)])
  func anExpectedSizeIsCheckedBeforeAByteIsTaken(expected: Int64, tellsLength: Bool) async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(
        DownloadHarness.path, OriginFile(seed: 8, size: 300_000).with { $0.tellsLength = tellsLength })
      let ledger = RecordingLedger()
      let failure = await harness.run(harness.spec { $0.expect.bytes = expected }, ledger: ledger).failure
      #expect(failure?.code == .sizeMismatch)
      #expect(failure?.class == .fail)
      #expect(failure?.message.contains("\(expected)") == true)
      if tellsLength { #expect(ledger.progress.allSatisfy { $0 == 0 }) }
      try #expect(harness.stagedNames.isEmpty)
    }
  }

  /// The smallest and the largest numbers that a server can send.
  @Test(
    "absurd lengths of a range are refused",
    arguments: [
      ("Content-Range", "bytes 0-131071/9223372036854775807", TaskFailure.Code.fileTooLarge),
      ("Content-Range", "bytes 0-131071/9223372036854775808", .badResponse),
      ("Content-Range", "bytes 0-131071/-1", .badResponse), ("Content-Range", "bytes 0-131071/0", .badResponse),
      ("Content-Range", "bytes 0-9223372036854775807/9223372036854775807", .badResponse),
      ("Content-Length", "9223372036854775807", .badResponse), ("Content-Length", "0", .badResponse),
    ])
  func absurdLengthsOfAPartAreRefused(field: String, value: String, code: TaskFailure.Code) async throws {
    try await DownloadHarness.run {
      $0.limits.retries = 1
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 8, size: 300_000))
      // The whole does not come either.
      harness.origin.script(DownloadHarness.path) { [$0.range == nil ? .answer(204) : .header(field, value)] }
      #expect(await harness.run(harness.spec()).failure?.code == code)
      try #expect(harness.published == nil)
    }
  }

  @Test(
    "absurd lengths of a whole response are refused",
    arguments: [
      ("9223372036854775807", .fileTooLarge), ("9223372036854775808", nil), ("-5", nil), ("+5", nil), ("5, 6", nil),
    ] as [(String, TaskFailure.Code?)])
  func absurdLengthsOfTheWholeAreRefused(value: String, code: TaskFailure.Code?) async throws {
    try await DownloadHarness.run {
      $0.limits.retries = 1
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, OriginFile(seed: 8, size: 300_000))
      harness.origin.always(DownloadHarness.path, .ignoresRange, .header("Content-Length", value))
      let failure = await harness.run(harness.spec()).failure
      #expect(failure != nil && (code == nil || failure?.code == code), "\(String(describing: failure))")
      try #expect(harness.published == nil)
    }
  }

  /// A file of 1000 bytes is at its destination, and the source has changed since then.
  private func fetchedAndChanged(
    _ harness: DownloadHarness, newSize: Int64
  ) async -> (old: OriginFile, new: OriginFile) {
    let (old, new) = (OriginFile(seed: 11, size: 1000), OriginFile(seed: 12, size: newSize))
    harness.origin.serve(DownloadHarness.path, old)
    _ = await harness.run(harness.spec())
    harness.origin.serve(DownloadHarness.path, new)
    return (old, new)
  }

  @Test("an existing destination fails the task, is skipped or is replaced, as the task says")
  func anExistingDestinationIsRespected() async throws {
    try await DownloadHarness.run { harness in
      let (old, new) = await fetchedAndChanged(harness, newSize: 2000)
      #expect(await harness.run(harness.spec()).failure?.code == .destinationExists)
      #expect(await harness.run(harness.spec { $0.ifExists = .skip }) == .succeeded(sha256: nil, bytes: 1000))
      try #expect(harness.published == old.bytes)
      let replaced = await harness.run(harness.spec { $0.ifExists = .replace })
      #expect(replaced == .succeeded(sha256: new.sha256, bytes: 2000))
      try #expect(harness.published == new.bytes)
    }
  }

  /// A task with an expectation succeeds only with the expected file, even if the file existed before.
  @Test("an existing file is skipped only if it is the expected one")
  func onlyTheExpectedFileIsSkipped() async throws {
    try await DownloadHarness.run { harness in
      let (old, new) = await fetchedAndChanged(harness, newSize: 1000)
      let expectations = [
        Expectation(bytes: 1000), Expectation(sha256: old.sha256), Expectation(sha256: old.sha256, bytes: 1000),
        Expectation(sha256: new.sha256), Expectation(md5: [UInt8](repeating: 0, count: 16)), Expectation(bytes: 999),
      ]
      for (number, expectation) in expectations.enumerated() {
        let spec = harness.spec {
          $0.ifExists = .skip
          $0.expect = expectation
        }
        let outcome = await harness.run(spec)
        if number < 3 {
          #expect(outcome == .succeeded(sha256: expectation.sha256, bytes: 1000))
        } else {
          #expect(outcome.failure?.code == .destinationExists)
          #expect(outcome.failure?.message.contains("a different file") == true)
        }
      }
      try #expect(harness.published == old.bytes)
    }
  }

  @Test(
    "a destination that is not a regular file fails the task before a byte is fetched",
    arguments: [S_IFDIR, S_IFIFO, S_IFSOCK])
  func aDestinationThatIsNoFileFailsTheTaskBeforeAByteIsFetched(kind: mode_t) async throws {
    try await DownloadHarness.run { harness in
      #expect(mkdir("\(harness.directory.path)/in", 0o755) == 0)
      try makeEntry(kind, at: "\(harness.directory.path)/in/film.mp4")
      for ifExists in IfExists.allCases {
        let failure = await harness.run(harness.spec { $0.ifExists = ifExists }).failure
        #expect(failure?.code == .destinationInvalid, "\(ifExists): \(String(describing: failure))")
        #expect(failure?.class == .fail)
      }
    }
  }

  @Test("a task keeps its rate limit")
  func aRateIsKept() async throws {
    try await DownloadHarness.run { harness in
      let file = OriginFile(seed: 13, size: 400_000)
      harness.origin.serve(DownloadHarness.path, file)
      let start = Clocks.boottime()
      #expect(
        await harness.run(harness.spec { $0.rate = 1_000_000 }) == .succeeded(sha256: file.sha256, bytes: 400_000))
      // The bytes of a quarter of a second pass at once. The other 150,000 need at least 0.15 s.
      #expect(Clocks.boottime() - start >= 140_000_000)
    }
  }

  @Test("all downloads together keep the engine's rate limit")
  func allDownloadsKeepTheEnginesRateTogether() async throws {
    try await DownloadHarness.run {
      $0.rate = 2_000_000
    } _: { harness in
      let files = (0..<4).map { OriginFile(seed: 14 + $0, size: 300_000) }
      let start = Clocks.boottime()
      await withTaskGroup { group in
        for (number, file) in files.enumerated() {
          harness.origin.serve("/\(number).mp4", file)
          let spec = harness.spec("/\(number).mp4") { $0.destination = "storage://default/\(number).mp4" }
          group.addTask {
            #expect(await harness.run(spec) == .succeeded(sha256: file.sha256, bytes: file.size))
          }
        }
      }
      // Half a megabyte passes at once. The other 0.7 MB need at least 0.35 s.
      #expect(Clocks.boottime() - start >= 340_000_000)
    }
  }

  @Test("a download that ends gives its share of the rate to the others")
  func aDownloadThatEndsLeavesTheLine() async throws {
    try await DownloadHarness.run {
      $0.rate = 100_000
    } _: { harness in
      let file = OriginFile(seed: 19, size: 10_000_000)
      harness.origin.serve(DownloadHarness.path, file)
      harness.origin.serve("/small", OriginFile(seed: 20, size: 20_000))
      let ledger = RecordingLedger()
      let spec = harness.spec()
      let task = Task { await harness.run(spec, ledger: ledger) }
      _ = await harness.origin.first { $0.sent.count > 0 }
      task.cancel()
      #expect(await task.value == .stopped)
      let small = harness.spec("/small") { $0.destination = "storage://default/small" }
      #expect(await harness.run(small) == .succeeded(sha256: OriginFile(seed: 20, size: 20_000).sha256, bytes: 20_000))
    }
  }

  @Test(
    "invalid sources fail the task",
    arguments: [
      ("ftp://127.0.0.1/a", TaskFailure.Code.sourceInvalid), ("http://u:p@127.0.0.1/a", .sourceInvalid),
      ("", .sourceInvalid),
    ])
  func wrongSourcesAreRefused(source: String, code: TaskFailure.Code) async throws {
    try await DownloadHarness.run { harness in
      let failure = await harness.run(harness.spec { $0.source = source }).failure
      #expect(failure?.code == code)
      #expect(failure?.class == .fail)
    }
  }

  @Test("invalid destinations fail the task, and an unknown storage lets it wait")
  func wrongDestinationsAreRefused() async throws {
    try await DownloadHarness.run { harness in
      for destination in ["storage://default/../x", "", "file:///tmp/x"] {
        let failure = await harness.run(harness.spec { $0.destination = destination }).failure
        #expect(failure?.code == .destinationInvalid)
      }
      let failure = await harness.run(harness.spec { $0.destination = "storage://elsewhere/x" }).failure
      #expect(failure?.class == .wait)
    }
  }
}
