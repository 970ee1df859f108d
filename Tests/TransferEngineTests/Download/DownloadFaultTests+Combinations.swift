import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

// What two faults at once may do to a download.
extension DownloadFaultTests {
  @Test("a signed URL that expires during an outage is fetched again", arguments: [400, 403, 404, 410])
  func expiresDuringAnOutage(status: Int) async throws {
    try await DownloadHarness.run { harness in
      let origin = harness.origin
      Self.sign(origin)
      origin.script("/signed/1") { $0.number < 3 ? [] : $0.number == 3 ? [.cut(after: 100)] : [.answer(status)] }
      #expect(
        await harness.run(harness.spec { $0.connections = 1 }) == .succeeded(sha256: Self.file.sha256, bytes: Self.size)
      )
      #expect(!origin.exchanges("/signed/2").isEmpty)
    }
  }

  @Test("a small file without a validator that is always cut fails, and is not fetched for ever")
  func isAlwaysCut() async throws {
    try await DownloadHarness.run { harness in
      var file = OriginFile(seed: 24, size: 100_000)
      (file.etag, file.lastModified) = (nil, nil)
      harness.origin.serve(DownloadHarness.path, file)
      harness.origin.script(DownloadHarness.path) { _ in [.cut(after: 70_000)] }
      let outcome = await harness.run(harness.spec())
      #expect(outcome.failure?.class == .retry, "\(outcome)")
      #expect(harness.origin.exchanges(DownloadHarness.path).count <= 10)
    }
  }

  @Test("a version of another size that comes between is no end of a version whose bytes are there")
  func anotherSizeBetween() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      var other = OriginFile(seed: 23, size: Self.size + 5)
      other.etag = "\"other\""
      let replacement = other
      let isSeen = Lock(false)
      harness.origin.script(DownloadHarness.path) { [origin = harness.origin] request in
        if request.number == 3 { origin.serve(DownloadHarness.path, replacement) }
        // Other requests may be under way; the one that begins anew has got the replacement.
        let wasSeen = isSeen.withLock { isSeen in
          defer { isSeen = isSeen || request.number > 3 && request["range"]?.hasPrefix("bytes=0-") == true }
          return isSeen
        }
        if wasSeen { origin.serve(DownloadHarness.path, Self.file) }
        return []
      }
      var spec = harness.spec()
      spec.expect.bytes = Self.size
      let ledger = RecordingLedger()
      var outcome = await harness.run(spec, ledger: ledger)
      #expect(outcome.failure?.class != .fail, "\(outcome)")
      if outcome.failure != nil { outcome = await harness.run(spec, from: ledger.last) }
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
    }
  }

  @Test(
    "of servers with validators of their own for the same bytes, these arrive after few requests", arguments: [2, 3],
    [OriginFile.IfRange.honoured, .ignored])
  func balancedServers(count: Int, ifRange: OriginFile.IfRange) async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file.with { $0.ifRange = ifRange })
      harness.origin.script(DownloadHarness.path) { [.tag("\"\($0.connection % count)\"")] }
      let outcome = await harness.run(harness.spec { $0.connections = 8 })
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
      #expect(harness.origin.exchanges(DownloadHarness.path).count <= 30)
    }
  }

  @Test("of a source with validators of its own in every answer, whole bodies are compared, or proven by a digest")
  func freshValidators() async throws {
    // Two bodies and the question between them, or one body. Ranges were tried before.
    for (acceptsRanges, isExpected, requests) in [
      (false, false, 3), (false, true, 1), (true, false, 20), (true, true, 20),
    ] {
      try await DownloadHarness.run { harness in
        harness.origin.serve(DownloadHarness.path, Self.file.with { $0.acceptsRanges = acceptsRanges })
        harness.origin.always(DownloadHarness.path, .freshTag)
        let spec = harness.spec { if isExpected { $0.expect.sha256 = Self.file.sha256 } }
        let done = DownloadOutcome.succeeded(
          sha256: Self.file.sha256, bytes: Self.size, isExpected ? nil : .twoFetches)
        #expect(await harness.run(spec) == done)
        #expect(harness.origin.exchanges(DownloadHarness.path).count <= requests)
      }
    }
  }

  @Test("whole bodies that differ with their validators are never published", arguments: [true, false])
  func freshContent(acceptsRanges: Bool) async throws {
    try await DownloadHarness.run { harness in
      harness.origin.script(DownloadHarness.path) { [origin = harness.origin] request in
        let next = OriginFile(seed: UInt64(100 + request.number), size: Self.size)
        origin.serve(DownloadHarness.path, next.with { $0.acceptsRanges = acceptsRanges })
        return []
      }
      harness.origin.serve(DownloadHarness.path, Self.file.with { $0.acceptsRanges = acceptsRanges })
      let failure = await harness.run(harness.spec()).failure
      #expect(failure?.code == .sourceChanging && failure?.class == .retry)
      try #expect(harness.published == nil)
      #expect(harness.origin.exchanges(DownloadHarness.path).count <= (acceptsRanges ? 25 : 8))
    }
  }

  @Test("statuses of gateways pass", arguments: [509, 525, 526, 529, 530, 598, 599])
  func gateways(status: Int) async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      harness.origin.script(DownloadHarness.path) { $0.number == 2 ? [.answer(status)] : [] }
      #expect(await harness.run(harness.spec()) == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
    }
  }
}
