import ReelhaulCurl
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// A POST may make another file each time.
extension UploadPutTests {
  /// More than sockets hold.
  private static let large = OriginContent(seed: 8).bytes(0..<16_000_000)

  private static func post(_ harness: UploadHarness, _ change: (inout TaskSpec) -> Void = { _ in }) -> TaskSpec {
    spec(harness) { spec in
      spec.parameters = Array(#"{"method": "POST"}"#.utf8)
      change(&spec)
    }
  }

  @Test(
    "a POST whose answer was lost after the whole file was sent is not sent again, by no run",
    arguments: [StoreFault.closeAfterApplying, .status(502), .status(504), .status(500)], [0, 300, 3_000_001])
  func postAnswerLost(fault: StoreFault, size: Int) async throws {
    var options = StoreOptions()
    options.honoursExpect = false
    try await UploadHarness.run(options: options) { harness in
      try harness.put(Array(Self.bytes().prefix(size)))
      harness.store.always(.post, fault, .noContinue)
      let (spec, ledger) = (Self.post(harness), UploadRecordingLedger())
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.code == .answerLost && first.failure?.class == .fail, "\(first)")
      let second = await harness.run(spec, from: ledger.last)
      #expect(second.failure?.code == .answerLost, "\(second)")
      #expect(harness.store.exchanges(.post).count == 1)
      #expect(harness.store.exchanges(.post).first?.request["idempotency-key"] == "\"\(spec.id)-0\"")
    }
  }

  @Test("a POST that was refused, or cut off before its end, is sent again, by the next run too")
  func postAgain() async throws {
    for fault in [StoreFault.status(503), .status(429), .closeBeforeReading, .closeAfter(bytes: 1_000_000)] {
      try await UploadHarness.run { harness in
        try harness.put(Self.large)
        harness.store.always(.post, fault)
        let (spec, ledger) = (Self.post(harness), UploadRecordingLedger())
        let first = await harness.run(spec, ledger: ledger)
        #expect(first.failure?.class == .retry, "\(fault): \(first)")
        harness.store.script { _ in [] }
        let outcome = await harness.run(spec, from: ledger.last)
        #expect(outcome.failure == nil, "\(fault): \(outcome)")
        let isThere = harness.store.objects["put/film.mp4"]?.bytes == Self.large
        #expect(isThere)
      }
    }
  }

  @Test("a server that refuses Expect and keeps the connection gets the file once") func expectRefused() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.large)
      harness.store.script {
        $0["expect"] != nil ? [.status(417, headers: [("Connection", "keep-alive")])] : []
      }
      let outcome = await harness.run(Self.post(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.post).map { $0.request["expect"] != nil } == [true, false])
    }
  }

  @Test("a POST that was refused in the middle of its last block is sent again", arguments: [429, 502, 503, 504])
  func postRefusedInTheMiddle(status: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Array(Self.bytes().prefix(900_000)))
      // The next run comes at the next attempt.
      harness.store.always(.post, .status(status, headers: [("Retry-After", "60")]), .refuseAfter(bytes: 100_000))
      // So slow that the system does not buffer the rest.
      var spec = Self.post(harness) { $0.rate = 400_000 }
      let ledger = UploadRecordingLedger()
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.code == .http(status) && first.failure?.class == .retry, "\(first)")
      harness.store.script { _ in [] }
      spec.rate = nil
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.objects["put/film.mp4"]?.bytes?.count == 900_000)
    }
  }

  @Test("a POST whose success comes before the file was sent is sent again") func postAnsweredEarly() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .post && $0.ordinal == 1 ? [.status(201)] : [] }
      let outcome = await harness.run(Self.post(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.post).map(\.bodyLength) == [0, Int64(Self.size)])
      Self.expectThere(harness)
    }
  }

  @Test("a POST that was cut off within its last block is sent again by the next run") func postCutOff() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.always(.post, .closeAfter(bytes: 2_400_000))
      // So slow that the system does not buffer the rest.
      var spec = Self.post(harness) { $0.rate = 2 << 20 }
      let ledger = UploadRecordingLedger()
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.class == .retry, "\(first)")
      harness.store.script { _ in [] }
      spec.rate = nil
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  @Test("a run that ended while a POST waited for its answer is not continued, and one that ended earlier is")
  func postStopped() async throws {
    for isSent in [false, true] {
      try await UploadHarness.run { harness in
        try harness.put(Self.large)
        let gate = OriginGate()
        harness.store.always(.post, isSent ? .holdAnswer(gate) : .holdBody(after: 100_000, gate))
        let (spec, ledger) = (Self.post(harness), UploadRecordingLedger())
        await harness.stop(spec, at: gate, ledger: ledger)
        harness.store.script { _ in [] }
        let outcome = await harness.run(spec, from: ledger.last)
        #expect(isSent ? outcome.failure?.code == .answerLost : outcome.failure == nil, "\(outcome)")
      }
    }
  }

  @Test("the task's own Idempotency-Key lets a POST be sent again") func postWithKey() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .post && $0.ordinal == 1 ? [.closeAfterApplying] : [] }
      let spec = Self.post(harness) { $0.headers.append(HeaderField(name: "Idempotency-Key", value: "\"mine\"")) }
      let outcome = await harness.run(spec)
      #expect(outcome.failure == nil, "\(outcome)")
      let keys = harness.store.exchanges(.post).map { $0.request["idempotency-key"] }
      #expect(keys == ["\"mine\"", "\"mine\""])
    }
  }

  @Test("an answer with more bytes than are kept is an answer: nothing is sent again") func longAnswer() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.always(.post, .status(201, body: String(repeating: "x", count: 3 << 20)), .noContinue)
      let outcome = await harness.run(Self.post(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.post).count == 1)
    }
  }
}
