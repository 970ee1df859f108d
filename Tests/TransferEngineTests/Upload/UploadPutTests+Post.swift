import Glibc
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
    // 303 may be thanks, or the way to a page for signing in, and 207 speaks of many files.
    arguments: [StoreFault.closeAfterApplying, .cutHead]
      + [207, 302, 303, 500, 502, 504, 520, 524].map { .status($0) },
    [0, 300, 3_000_001])
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
      let key = harness.store.exchanges(.post).first?.request["idempotency-key"]
      #expect(key?.hasPrefix("\"\(spec.id)-") == true)
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

  @Test(
    "the output of a POST says where the server made the file, without what is secret",
    arguments: [(201, "../made/7?token=secret", "/made/7?token=***"), (201, "", nil), (200, "/made/7", nil)])
  func postTellsThePlace(status: Int, location: String, place: String?) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.always(
        .post, .status(status, headers: [("Location", location)]), .refuseAfter(bytes: Int64(Self.size)))
      let outcome = await harness.run(Self.post(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(outcome.object?.location == place.map { harness.store.url($0) }, "\(outcome)")
    }
  }

  @Test("a POST that was refused in the middle of its last block is sent again", arguments: [429, 502, 503, 504])
  func postRefusedInTheMiddle(status: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Array(Self.bytes().prefix(900_000)))
      // The next run comes at the next attempt.
      harness.store.always(.post, .status(status, headers: [("Retry-After", "60")]), .refuseAfter(bytes: 100_000))
      // So slow that the rest is not sent into the system's buffers before the refusal comes.
      var spec = Self.post(harness) { $0.rate = 100_000 }
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
      // Its last block begins at 1 MiB.
      let bytes = Array(Self.bytes().prefix(2_000_000))
      try harness.put(bytes)
      harness.store.always(.post, .closeAfter(bytes: 1_100_000))
      // So slow that the rest is not sent into the system's buffers before the connection ends.
      var spec = Self.post(harness) { $0.rate = 512 << 10 }
      let ledger = UploadRecordingLedger()
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.class == .retry, "\(first)")
      harness.store.script { _ in [] }
      spec.rate = nil
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      let isThere = harness.store.objects.count == 1 && harness.store.objects["put/film.mp4"]?.bytes == bytes
      #expect(isThere)
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

  @Test("a POST that may have brought the whole file is not sent again after a cancel and a retry, and any other is")
  func postCanceled() async throws {
    for (isSent, hasKey) in [(false, false), (true, false), (false, true), (true, true)] {
      try await UploadHarness.run { harness in
        try harness.put(Self.large)
        let gate = OriginGate()
        harness.store.always(.post, isSent ? .holdAnswer(gate) : .holdBody(after: 100_000, gate))
        let (spec, ledger) = (Self.post(harness) { if hasKey { $0.headers.append(Self.key) } }, UploadRecordingLedger())
        await harness.stop(spec, at: gate, ledger: ledger)
        harness.store.script { _ in [] }
        // The checkpoint goes with the cancel, and that there was one is known.
        let outcome = await harness.run(spec, ledger: UploadRecordingLedger(beginsAnew: ledger.last != nil))
        #expect(isSent ? outcome.failure?.code == .answerLost : outcome.failure == nil, "\(outcome)")
        #expect(harness.store.exchanges(.post).count == (isSent ? 1 : 2))
      }
    }
  }

  @Test("a POST that brought nothing is not in doubt, however often it was tried", arguments: [true, false])
  func postUntried(hasKey: Bool) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.large)
      harness.store.always(.post, .closeBeforeReading)
      let (spec, ledger) = (Self.post(harness) { if hasKey { $0.headers.append(Self.key) } }, UploadRecordingLedger())
      // For longer than progress may stay unrecorded.
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      #expect(ledger.last == nil)
    }
  }

  @Test("two versions of the source never have the same key, although no run has recorded the first")
  func postVersions() async throws {
    try await UploadHarness.run { harness in
      let spec = Self.post(harness)
      for seed in [UInt64(8), 8, 9] {
        if seed == 9 { unlink(harness.sourcePath) }
        if harness.store.exchanges.isEmpty || seed == 9 {
          try harness.put(OriginContent(seed: seed).bytes(0..<Int64(Self.large.count)))
        }
        harness.store.always(.post, .status(503, headers: [("Retry-After", "60")]))
        #expect(await harness.run(spec).failure?.class == .retry)
      }
      let keys = harness.store.exchanges(.post).map { $0.request["idempotency-key"] }
      #expect(keys.count == 3 && keys[0] == keys[1] && keys[1] != keys[2], "\(keys)")
    }
  }

  @Test("the task's own Idempotency-Key does not let another version of the source take the place of the first")
  func postWithKeyChanged() async throws {
    for isSent in [true, false] {
      try await UploadHarness.run { harness in
        try harness.put(Self.large)
        // The second request of a run does not reach the server, which may have taken the first.
        harness.store.script { request in
          guard request.operation == .post else { return [] }
          return isSent && request.ordinal == 1 ? [.closeAfterApplying] : [.closeBeforeReading]
        }
        let (spec, ledger) = (Self.post(harness) { $0.headers.append(Self.key) }, UploadRecordingLedger())
        #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
        let before = harness.store.exchanges(.post).count
        harness.store.script { _ in [] }
        unlink(harness.sourcePath)
        try harness.put(Self.bytes())
        let outcome = await harness.run(spec, from: ledger.last)
        #expect(isSent ? outcome.failure?.code == .answerLost : outcome.failure == nil, "\(outcome)")
        #expect(harness.store.exchanges(.post).count == before + (isSent ? 0 : 1))
      }
    }
  }

  private static let key = HeaderField(name: "Idempotency-Key", value: "\"mine\"")

  @Test("the task's own Idempotency-Key lets a POST be sent again") func postWithKey() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .post && $0.ordinal == 1 ? [.closeAfterApplying] : [] }
      let spec = Self.post(harness) { $0.headers.append(Self.key) }
      let outcome = await harness.run(spec)
      #expect(outcome.failure == nil, "\(outcome)")
      let keys = harness.store.exchanges(.post).map { $0.request["idempotency-key"] }
      #expect(keys == ["\"mine\"", "\"mine\""])
    }
  }

  @Test(
    "a POST that the server has stored is not sent again, whatever the answer tells of digests",
    arguments: [true, false])
  func postStoredOnce(hasKey: Bool) async throws {
    let other = ("Repr-Digest", Self.sha256(of: Self.json))
    let differing: [([(String, String)], String)] = [
      ([other], ""), ([other, ("Location", "/made/7"), ("Content-Location", "/made/7")], Self.json),
      ([("x-amz-checksum-crc32c", "AAAAAA==")], Self.json),
    ]
    let answers = Self.unrelated.map { ($0, false) } + differing.map { ($0, true) }
    for ((fields, body), differs) in answers {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        harness.store.always(.post, .status(201, headers: fields, body: body), .noContinue)
        let outcome = await harness.run(Self.post(harness) { if hasKey { $0.headers.append(Self.key) } })
        #expect(outcome.failure?.code == (differs ? .digestMismatch : nil), "\(fields): \(outcome)")
        #expect(outcome.failure?.class == (differs ? .fail : nil), "\(fields): \(outcome)")
        #expect(harness.store.exchanges(.post).count == 1, "\(fields)")
      }
    }
  }

  @Test("a POST that the server has stored is a success, also if the source cannot be read to prove it")
  func postStoredWithoutSource() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let gate = OriginGate()
      let answer = StoreFault.status(201, headers: [("x-amz-checksum-crc32c", "AAAAAA==")])
      harness.store.always(.post, answer, .noContinue, .holdAnswer(gate))
      let run = Task { await harness.run(Self.post(harness)) }
      await gate.reached()
      truncate(harness.sourcePath, 1)
      gate.open()
      let outcome = await run.value
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.post).count == 1)
    }
  }

  @Test("a success whose own body is cut off is one", arguments: [CurlRequest.Method.put, .post])
  func cutAnswer(method: CurlRequest.Method) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let answer = StoreFault.status(201, headers: [("Content-Length", "500"), ("Connection", "close")], body: "x")
      harness.store.script { [.put, .post].contains($0.operation) ? [answer, .noContinue] : [] }
      let outcome = await harness.run(method == .post ? Self.post(harness) : Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect((harness.store.exchanges(.put) + harness.store.exchanges(.post)).count == 1)
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
