import Glibc
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What a tus server may do to an upload.
@Suite struct UploadTusTests {
  /// Four requests, of which the last is shorter.
  static let size = 26_000_001
  static let piece: Int64 = 8 << 20

  private static let all = OriginContent(seed: 7).bytes(0..<Int64(size))
  static func bytes() -> [UInt8] { all }

  static func spec(_ harness: UploadHarness) -> TaskSpec {
    TaskSpec(
      id: .random(), kind: .upload, source: UploadHarness.source, destination: "tus+\(harness.store.url("/tus"))",
      headers: [HeaderField(name: "X-Secret", value: "a secret")])
  }

  /// An upload to a server with these faults.
  struct Upload {
    let options: StoreOptions
    let script: StoreServer.Script

    func run(_ check: (UploadHarness, UploadOutcome) async throws -> Void) async throws {
      try await UploadHarness.run(options: options) { harness in
        try harness.put(UploadTusTests.bytes())
        harness.store.script(script)
        let outcome = await harness.run(UploadTusTests.spec(harness))
        try await check(harness, outcome)
      }
    }
  }

  func upload(
    options: StoreOptions = StoreOptions(),
    script: @escaping StoreServer.Script
  ) -> Upload {
    Upload(options: options, script: script)
  }

  /// Whether the file is there once, and nothing else.
  static func expectThere(_ harness: UploadHarness, at location: SourceLocation = #_sourceLocation) {
    // A failure must not show megabytes.
    let isThere =
      harness.store.uploads.isEmpty && harness.store.objects.count == 1
      && harness.store.objects.values.first?.bytes == bytes()
    #expect(isThere, sourceLocation: location)
  }

  @Test("a token that ends in the middle is read anew, and the next attempt goes on") func token() async throws {
    try await UploadHarness.run { harness in
      let (path, port) = ("\(harness.directory.path)/credentials.json", harness.store.port)
      let write: @Sendable (String) throws -> Void = { token in
        try TextFile.write(
          #"{"web": {"hosts": ["127.0.0.1:\#(port)"], "bearer": "\#(token)", "allowHTTP": true}}"#, to: path,
          mode: 0o600)
      }
      try write("first")
      try harness.put(Self.bytes())
      harness.store.script { request in
        guard request["authorization"] == "Bearer first", request.operation == .tusPatch, request.ordinal == 3 else {
          return []
        }
        try? write("second")
        return [.status(401)]
      }
      var spec = Self.spec(harness)
      spec.credential = "web"
      let ledger = UploadRecordingLedger()
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.code == .http(401) && first.failure?.class == .retry, "\(first)")
      #expect(await harness.run(spec, from: ledger.last).failure == nil)
      #expect(harness.store.exchanges(.tusCreate).count == 1 && harness.store.exchanges(.tusPatch).count == 5)
      Self.expectThere(harness)

      harness.store.script { $0.operation == .tusPatch ? [.status(403)] : [] }
      spec.id = .random()
      let other = await harness.run(spec)
      #expect(other.failure?.code == .http(403) && other.failure?.class == .fail, "nothing else is there: \(other)")
    }
  }

  // MARK: Offsets

  @Test("a server that keeps only a part of a request gets the rest", arguments: [1, 3 << 20, 8 << 20])
  func offsetFalls(by: Int64) async throws {
    for checksums in [[StoreChecksum.sha256], []] {
      var options = StoreOptions()
      options.tusChecksums = checksums
      try await upload(
        options: options, script: { $0.operation == .tusPatch && $0.ordinal <= 2 ? [.offsetFalls(by: by)] : [] }
      ).run { harness, outcome in
        #expect(outcome.failure == nil, "\(outcome)")
        Self.expectThere(harness)
      }
    }
  }

  @Test("a request that another one has interrupted goes on") func interrupted() async throws {
    try await upload(script: {
      $0.operation == .tusPatch && $0.ordinal == 2
        ? [.status(400, body: "ERR_UPLOAD_INTERRUPTED: upload has been interrupted by another request")] : []
    }).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.tusCreate).count == 1)
      Self.expectThere(harness)
    }
  }

  @Test("a server that keeps a part of every request is no failing one") func alwaysFalls() async throws {
    try await upload(script: { $0.operation == .tusPatch && $0.ordinal <= 10 ? [.offsetFalls(by: 6 << 20)] : [] }).run {
      harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  @Test("an upload that has lost bytes between two runs goes on where it is") func fallsBetweenRuns() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      harness.store.script { $0.operation == .tusPatch && $0.ordinal >= 3 ? [.status(403)] : [] }
      // What refuses for good gives the upload up, so the server must not know how.
      harness.store.options.tusExtensions.removeAll { $0 == "termination" }
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .fail)
      harness.store.script { $0.operation == .tusHead && $0.ordinal == 1 ? [.offsetFalls(by: 5 << 20)] : [] }
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.tusCreate).count == 1)
      Self.expectThere(harness)
    }
  }

  @Test("a server that has more than was sent ends the upload", arguments: [1, 1 << 30])
  func ahead(by: Int64) async throws {
    try await upload(script: { $0.operation == .tusPatch && $0.ordinal == 2 ? [.offsetAhead(by: by)] : [] }).run {
      harness, outcome in
      #expect(outcome.failure?.code == .uploadAhead && outcome.failure?.class == .fail, "\(outcome)")
      #expect(harness.store.exchanges(.tusPatch).count == 2)
    }
  }

  @Test("a server that refuses the request for an empty file and shows nothing has not taken it")
  func emptyAndRefused() async throws {
    try await UploadHarness.run { harness in
      try harness.put([])
      harness.store.script { request in
        switch request.operation {
        case .tusPatch: [.status(401)]
        case .tusHead: [.status(404)]
        default: []
        }
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure != nil, "\(outcome)")
    }
  }

  @Test("after an interruption a server that claims more than was sent, or all, is not believed")
  func aheadAfterAnInterruption() async throws {
    let rest = Int64(Self.size) - Self.piece
    for by in [Self.piece + 1, rest] {
      try await upload(script: { request in
        switch request.operation {
        case .tusPatch where request.ordinal == 2: [.status(500)]
        case .tusHead where request.ordinal == 1: [.offsetAhead(by: by)]
        default: []
        }
      }).run { harness, outcome in
        #expect(outcome.failure?.code == .uploadAhead && outcome.failure?.class == .fail, "\(outcome)")
        let objects = harness.store.objects.count
        #expect(objects == 0)
      }
    }
  }

  // MARK: Answers

  @Test("a wrong offset and a damaged request are answered by asking where to go on", arguments: [409, 460, 500, 503])
  func again(status: Int) async throws {
    try await upload(script: { $0.operation == .tusPatch && $0.ordinal == 2 ? [.status(status)] : [] }).run {
      harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.tusHead).count == 2)
      #expect(harness.store.exchanges(.tusPatch).count == 5)
      Self.expectThere(harness)
    }
  }

  @Test("bytes that are damaged on the way are noticed by the server, and sent again") func corrupted() async throws {
    var options = StoreOptions()
    options.tusChecksums = [.sha256]
    try await upload(options: options, script: { _ in [] }).run { harness, outcome in
      let patches = harness.store.exchanges(.tusPatch)
      #expect(patches.allSatisfy { $0.request["upload-checksum"]?.hasPrefix("sha256 ") == true })
      Self.expectThere(harness)
    }
  }

  @Test("a lock that stays for minutes is waited for, and no second upload is begun") func locked() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      harness.store.script { request in
        [.tusPatch, .tusHead].contains(request.operation) && request.ordinal <= 2 ? [.status(423)] : []
      }
      var outcomes: [UploadOutcome] = []
      repeat {
        outcomes.append(await harness.run(spec, from: ledger.last, ledger: ledger))
      } while outcomes.last?.failure?.class == .wait
      #expect(outcomes.count > 2)
      #expect(outcomes.dropLast().allSatisfy { $0.failure?.retryAfter == 15 })
      #expect(outcomes.last?.failure == nil, "\(outcomes)")
      #expect(harness.store.exchanges(.tusCreate).count == 1)
      Self.expectThere(harness)
    }
  }

  @Test("an upload that is gone is sent anew") func gone() async throws {
    try await upload(script: { $0.operation == .tusPatch && $0.ordinal == 2 ? [.gone410] : [] }).run {
      harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(outcome.object?.remark == nil)
      Self.expectThere(harness)
    }
  }

  @Test("a file that is larger than the server takes is refused before anything is sent") func maxSize() async throws {
    var options = StoreOptions()
    options.tusMaxSize = 1_000_000
    try await upload(options: options, script: { _ in [] }).run { harness, outcome in
      #expect(outcome.failure?.code == .fileTooLarge && outcome.failure?.class == .fail, "\(outcome)")
      #expect(harness.store.exchanges(.tusCreate).isEmpty)
    }
    // A server that says it only when it is asked.
    try await upload(script: { $0.operation == .tusCreate ? [.maxSize(1_000_000)] : [] }).run { harness, outcome in
      #expect(outcome.failure?.code == .http(413) && outcome.failure?.class == .fail, "\(outcome)")
      #expect(harness.store.exchanges(.tusPatch).isEmpty)
    }
  }

  @Test("a proxy that takes only small requests is named by the failure") func proxyLimit() async throws {
    try await upload(script: { $0.operation == .tusPatch ? [.status(413)] : [] }).run { _, outcome in
      #expect(outcome.failure?.class == .fail && outcome.failure?.message.contains("--part-size") == true, "\(outcome)")
    }
  }

  @Test("an expiry in the past is no reason to stop") func expired() async throws {
    var options = StoreOptions()
    options.tusExpiresAfter = -3600
    try await upload(options: options, script: { _ in [] }).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  @Test("a file that the server took and does not show is not called verified, nor sent again") func vanished()
    async throws
  {
    try await upload(script: { $0.operation == .tusHead ? [.status(404)] : [] }).run { harness, outcome in
      #expect(outcome.object?.verified == UploadOutput.Verified.none, "\(outcome)")
      #expect(outcome.object?.remark?.contains("does not show") == true)
      #expect(harness.store.exchanges(.tusCreate).count == 1)
    }
  }

  @Test("an upload that the server has called short is not done once it is gone", arguments: [false, true])
  func shortAndGone(isJoined: Bool) async throws {
    try await UploadHarness.run { harness in
      if isJoined { try harness.putLarge() } else { try harness.put(Self.bytes()) }
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      harness.store.script { request in
        guard request.operation == .tusHead else { return [] }
        return request.ordinal == 1 ? [.offsetAhead(by: -1)] : request.ordinal <= 3 ? [.status(503)] : []
      }
      // A run that cannot ask changes nothing of it.
      for code in [TaskFailure.Code.sizeMismatch, .http(503)] {
        let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
        #expect(outcome.failure?.code == code, "\(outcome)")
      }
      for id in harness.store.objects.keys { harness.store.delete(id) }
      harness.store.script { _ in [] }
      let created = harness.store.exchanges(.tusCreate).count
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.object?.verified == .size && outcome.object?.remark == nil, "\(outcome)")
      #expect(harness.store.exchanges(.tusCreate).count == 2 * created)
      #expect(harness.store.objects.count == 1 && harness.store.uploads.isEmpty)
    }
  }

  @Test("an offset beyond the end of the file is refused") func beyondTheEnd() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let wait = [(name: "Retry-After", value: "60")]
      harness.store.script { $0.operation == .tusPatch && $0.ordinal > 1 ? [.status(503, headers: wait)] : [] }
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      _ = await harness.run(spec, ledger: ledger)
      #expect(ledger.last?.session != nil)
      harness.store.script { $0.operation == .tusHead ? [.offsetAhead(by: 1 << 30)] : [] }
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.failure?.code == .sizeMismatch && outcome.failure?.class == .fail, "\(outcome)")
    }
  }

  // MARK: Bounds

  @Test("an upload with checksums holds one request in memory, not all it has sent") func bounded() async throws {
    var options = StoreOptions()
    options.tusExtensions.removeAll { $0 == "concatenation" }
    options.keepsBodiesUpTo = 0
    try await UploadHarness.run(options: options) { harness in
      try harness.put([])
      guard truncate(harness.sourcePath, 384 << 20) == 0 else { throw SystemError.last("truncate") }
      let resident = Lock<[Int]>([])
      harness.store.script { request in
        if request.operation == .tusPatch {
          let text = (try? TextFile.read("/proc/self/statm")) ?? ""
          resident.withLock { $0.append((Int(text.split(separator: " ")[1]) ?? 0) * 4096) }
        }
        return []
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      let seen = resident.withLock { $0 }
      #expect(seen.count == 48)
      #expect((seen.last ?? 0) - (seen.dropFirst(2).first ?? 0) < 192 << 20, "\(seen)")
    }
  }

  // MARK: Lost creations

  @Test("an upload whose creation is answered after the run was stopped is ended") func stoppedWhileCreating()
    async throws
  {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let gate = OriginGate()
      harness.store.always(.tusCreate, .holdAnswer(gate))
      let spec = Self.spec(harness)
      let run = Task { await harness.run(spec) }
      await gate.reached()
      run.cancel()
      #expect(await run.value == .stopped)
      #expect(harness.store.uploads.count == 1)
      gate.open()
      try await eventually("nothing is left") { harness.store.uploads.isEmpty }
    }
  }

  @Test("a server that cannot be asked for some seconds after an interruption costs no attempt")
  func askedAgain() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { request in
        switch request.operation {
        case .tusPatch where request.ordinal == 1: [.closeAfter(bytes: 1_000_000)]
        case .tusHead where request.ordinal <= 3: [.status(503)]
        default: []
        }
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.tusHead).prefix(4).map(\.status) == [503, 503, 503, 200])
    }
  }

  @Test("after a lost answer to a creation the task says that an empty upload may be left") func orphan() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(harness), UploadRecordingLedger())
      harness.store.script { $0.operation == .tusCreate && $0.ordinal == 1 ? [.closeAfterApplying] : [] }
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.object?.remark?.contains("creation") == true, "\(outcome)")
      #expect(harness.store.objects.count == 1)
    }
  }
}
