import ReelhaulCurl
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Requests whose source is slow.
@Suite struct UploadBodyTests {
  /// Of two blocks.
  private static let film = OriginContent(seed: 7).bytes(0..<1_500_000)

  enum Kind: CaseIterable {
    case put, post, tus

    var operation: StoreOperation { self == .put ? .put : self == .post ? .post : .tusPatch }

    func spec(_ harness: UploadHarness) -> TaskSpec {
      UploadPutTests.spec(harness) {
        ($0.kind, $0.headers) = (.copy, [])
        $0.source = harness.store.url("/put/source.mp4", host: "localhost")
        if self == .post { $0.parameters = Array(#"{"method": "POST"}"#.utf8) }
        guard self == .tus else { return }
        $0.destination = "tus+\(harness.store.url("/tus"))"
        $0.parameters = Array(#"{"checksum": "none"}"#.utf8)
      }
    }
  }

  /// Whether the request reads the last block.
  private static func readsLast(_ request: StoreRequest) -> Bool {
    request["range"].map { $0.hasSuffix("-1499999") && !$0.hasPrefix("bytes=0-") } ?? false
  }

  private static func connectionIsFree(_ harness: UploadHarness) async throws {
    try await eventually("the source's connection is free") {
      harness.store.exchanges(.get).allSatisfy(\.isFinished) && harness.roots.hosts.used == 0
    }
  }

  @Test("a request that has failed reads no more of its source", .timeLimit(.minutes(10)), arguments: Kind.allCases)
  func failed(kind: Kind) async throws {
    try await UploadHarness.run { harness in
      harness.store.put("put/source.mp4", bytes: Self.film)
      let gate = OriginGate()
      let hasFailed = Lock(false)
      harness.store.script { request in
        if request.operation == kind.operation, request.ordinal <= 2 { return [.closeAfter(bytes: 100_000)] }
        if request.operation == kind.operation { hasFailed.withLock { $0 = true } }
        return Self.readsLast(request) && !hasFailed.withLock { $0 } ? [.holdAnswer(gate)] : []
      }
      let ledger = UploadRecordingLedger()
      let outcome = await harness.run(kind.spec(harness), ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(kind == .tus || ledger.progress.dropFirst().contains(0), "what was sent in vain does not count")
      try await Self.connectionIsFree(harness)
    }
  }

  @Test(
    "a refusal is told at once, although the source supplies nothing", .timeLimit(.minutes(10)),
    arguments: [Kind.put, .post])
  func refused(kind: Kind) async throws {
    try await UploadHarness.run { harness in
      harness.store.put("put/source.mp4", bytes: Self.film)
      let gate = OriginGate()
      harness.store.script { request in
        if request.operation == kind.operation { return [.status(403), .refuseAfter(bytes: 1 << 20)] }
        return Self.readsLast(request) ? [.holdAnswer(gate)] : []
      }
      let outcome = await harness.run(kind.spec(harness))
      #expect(outcome.failure?.code == .http(403), "\(outcome)")
    }
  }

  @Test("a slow limit sends something every few seconds, before the server loses patience")
  func slowLimit() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Array(Self.film.prefix(10_000)))
      let spec = UploadPutTests.spec(harness) { $0.rate = 100 }
      let task = Task { await harness.run(spec) }
      let request = await harness.store.first { $0.bodyLength >= 1000 }
      #expect(request.bodyLength == 1000)
      task.cancel()
      #expect(await task.value == .stopped)
    }
  }

  @Test("a run that was stopped reads no more of its source", .timeLimit(.minutes(10)), arguments: Kind.allCases)
  func stopped(kind: Kind) async throws {
    try await UploadHarness.run { harness in
      harness.store.put("put/source.mp4", bytes: Self.film)
      let (reading, sending) = (OriginGate(), OriginGate())
      harness.store.script { request in
        if request.operation == kind.operation { return [.holdBody(after: 100_000, sending)] }
        return Self.readsLast(request) ? [.holdAnswer(reading)] : []
      }
      let ledger = UploadRecordingLedger()
      let spec = kind.spec(harness)
      let task = Task { await harness.run(spec, ledger: ledger) }
      await reading.reached()
      await sending.reached()
      task.cancel()
      #expect(await task.value == .stopped)
      try await Self.connectionIsFree(harness)
      // The last block was never there.
      #expect(kind != .post || ledger.last == nil)
    }
  }
}
