import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What a store may do to an object that is copied from it.
extension UploadS3Tests {
  /// A copy within one store, of which a short one goes through the worker unless it may replace something.
  static func copy(_ change: (inout TaskSpec) -> Void = { _ in }) -> TaskSpec {
    spec {
      $0.kind = .copy
      $0.source = "s3://films/source.mp4"
      change(&$0)
    }
  }

  @Test("a short object is copied from a store that answers ranges with status 200, with and without Content-Range")
  func status200() async throws {
    for lies in [[StoreFault.statusAfterApplying(200)], [.statusAfterApplying(200), .header("Content-Range", nil)]] {
      try await UploadHarness.run { harness in
        let bytes = Self.bytes(Self.small)
        harness.store.put("films/source.mp4", bytes: bytes)
        harness.store.script { request in
          // The first range is not the whole, and must say so.
          request.operation == .getObject ? (request.ordinal == 1 ? [.statusAfterApplying(200)] : lies) : []
        }
        let outcome = await harness.run(Self.copy())
        #expect(outcome.failure == nil, "\(outcome)")
        Self.expectThere(harness, bytes)
      }
    }
  }

  @Test(
    "a copy has the content fields and the metadata of its source, but for what the task says",
    arguments: [small, size], [true, false])
  func properties(size: Int, byStore: Bool) async throws {
    try await UploadHarness.run { harness in
      var source = harness.store.put("films/source.mp4", bytes: Self.bytes(size))
      source.headers = [
        "content-type": "video/mp4", "content-encoding": "aws-chunked, gzip", "cache-control": "max-age=5",
        "content-disposition": "inline", "content-language": "en", "x-amz-storage-class": "GLACIER",
      ]
      source.metadata = ["title": "One", "year": "1999", "reelhaul-task": "another", "name": "ü"]
      harness.store.put("films/source.mp4", source)
      if !byStore {
        harness.store.script { [.uploadPartCopy, .copyObject].contains($0.operation) ? [.status(501)] : [] }
      }
      let spec = Self.copy {
        $0.ifExists = .replace
        $0.parameters = Array(#"{"metadata":{"year":"2000"}}"#.utf8)
      }
      let outcome = await harness.run(spec)
      #expect(outcome.failure == nil, "\(outcome)")
      let copy = try #require(harness.store.objects["films/film.mp4"])
      #expect(
        copy.headers == [
          "content-type": "video/mp4", "content-encoding": "gzip", "cache-control": "max-age=5",
          "content-disposition": "inline", "content-language": "en",
        ])
      var metadata = copy.metadata
      #expect(metadata.removeValue(forKey: "reelhaul-version")?.utf8.count == 32)
      #expect(
        metadata == [
          "title": "One", "year": "2000", "reelhaul-task": "\(spec.id)", "reelhaul-generation": "0",
        ])
      let other = await harness.run(
        Self.copy {
          $0.ifExists = .replace
          $0.parameters = Array(#"{"contentType":"video/webm"}"#.utf8)
        })
      #expect(other.failure == nil, "\(other)")
      #expect(harness.store.objects["films/film.mp4"]?.headers["content-type"] == "video/webm")
    }
  }

  @Test("metadata of a source that is more than stores take is left out, and what its content is stays")
  func tooMuchMetadata() async throws {
    try await UploadHarness.run { harness in
      var source = harness.store.put("films/source.mp4", bytes: Self.bytes(Self.small))
      source.headers = ["content-type": "video/mp4"]
      source.metadata = [
        "title": String(repeating: "x", count: 1200), "text": String(repeating: "y", count: 1200),
      ]
      harness.store.put("films/source.mp4", source)
      let outcome = await harness.run(Self.copy())
      #expect(outcome.failure == nil, "\(outcome)")
      let copy = try #require(harness.store.objects["films/film.mp4"])
      #expect(copy.headers["content-type"] == "video/mp4")
      #expect(Set(copy.metadata.keys) == ["reelhaul-task", "reelhaul-generation", "reelhaul-version"])
    }
  }

  @Test("a page of a gateway does not end a copy that the store makes") func gatewayPage() async throws {
    try await UploadHarness.run { harness in
      harness.store.put("films/source.mp4", bytes: Self.all)
      harness.store.script {
        $0.operation == .uploadPartCopy && $0.ordinal == 2 ? [.status(404, body: "<html>not here</html>")] : []
      }
      let outcome = await harness.run(Self.copy())
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness, Self.all)
      #expect(harness.store.exchanges(.createUpload).count == 1 && harness.store.exchanges(.uploadPart).isEmpty)
    }
  }

  @Test("a clock that differs by hours is taken from the store that is copied from", arguments: [small, size])
  func skewOfSource(size: Int) async throws {
    try await UploadHarness.run { harness in
      let bytes = Self.bytes(size)
      harness.store.put("films/source.mp4", bytes: bytes)
      harness.store.script { _ in [.clockSkew(seconds: 7200)] }
      let outcome = await harness.run(Self.copy())
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness, bytes)
    }
  }

  @Test("a file without ranges is fetched once, and its bytes count until the copy ends") func heldSource() async throws
  {
    let origin = try OriginServer()
    defer { origin.close() }
    let file = OriginFile(seed: 1, size: 20 << 20).with { $0.acceptsRanges = false }
    origin.serve("/film.mp4", file)
    try await UploadHarness.run { harness in
      let held = harness.roots.remote.held
      let gate = OriginGate()
      harness.store.always(.uploadPart, .holdBody(after: 500_000, gate))
      let source = origin.url("/film.mp4")
      func run(_ key: String) async -> UploadOutcome {
        await harness.run(
          Self.copy {
            $0.source = source
            $0.destination = "s3://films/\(key)"
            $0.credential = nil
            $0.parameters = Array(#"{"toCredential":"s3"}"#.utf8)
          })
      }
      async let first = run("one.mp4")
      try await eventually("its parts are sent") { harness.store.exchanges(.uploadPart).count == 3 }
      #expect(held.held == file.size, "its parts need no more")
      #expect(origin.exchanges("/film.mp4").count == 1)
      let quarter = HeldBytes.standardLimit / 4
      var rest = try [quarter, quarter, quarter, quarter - file.size].enumerated().map { number, count in
        try #require(held.takeNow(count, for: .relays(to: "\(number)")))
      }
      #expect(rest.count == 4)
      async let second = run("two.mp4")
      try await eventually("it waits for memory") { held.waiting == 1 }
      rest = []
      try await eventually("both are held") { held.held == 2 * file.size }
      gate.open()
      for outcome in await [first, second] { #expect(outcome.failure == nil, "\(outcome)") }
      for key in ["one", "two"] { #expect(harness.store.objects["films/\(key).mp4"]?.matches(file.content) == true) }
      try await eventually("nothing is held") { held.held == 0 }
      #expect(origin.exchanges("/film.mp4").count == 3)
    }
  }

  @Test("copies that wait for a slow source do not hold up the uploads to their store") func slowSource() async throws {
    let origin = try OriginServer()
    defer { origin.close() }
    origin.serve("/film.mp4", OriginFile(seed: 1, size: 65 << 20))
    let gate = OriginGate()
    // Both have asked before either reads more.
    origin.script("/film.mp4") { $0["range"] == "bytes=0-65535" ? [] : [.hold(after: 0, gate)] }
    try await UploadHarness.run { harness in
      let held = harness.roots.remote.held
      let source = origin.url("/film.mp4")
      let copies = ["one", "two"].map { key in
        Task {
          await harness.run(
            Self.copy {
              $0.source = source
              $0.destination = "s3://films/\(key).mp4"
              $0.credential = nil
              $0.parameters = Array(#"{"toCredential":"s3","partSize":33554432}"#.utf8)
            })
        }
      }
      try await eventually("they hold what they may") { held.waiting > 0 }
      let bytes = Self.bytes(Self.size)
      try harness.put(bytes)
      let upload = Task { await harness.run(Self.spec()) }
      try await eventually("it is there") { harness.store.objects["films/film.mp4"] != nil }
      let outcome = await upload.value
      #expect(outcome.failure == nil, "\(outcome)")
      let isThere = harness.store.objects["films/film.mp4"]?.bytes == bytes
      #expect(isThere)
      for copy in copies { copy.cancel() }
      for copy in copies { #expect(await copy.value == .stopped) }
      #expect(held.held == 0)
      gate.open()
    }
  }

  @Test("parts that the store has are compared with their source some at once, as far as the task's limits let them")
  func comparesAtOnce() async throws {
    for (connections, rate, atOnce) in [(8, nil, 4), (2, nil, 2), (8, 100 << 20, 1)] as [(Int, Int64?, Int)] {
      let origin = try OriginServer()
      defer { origin.close() }
      let file = OriginFile(seed: 1, size: 30 << 20)
      origin.serve("/film.mp4", file)
      try await UploadHarness.run { harness in
        let ledger = UploadRecordingLedger()
        let spec = Self.copy {
          $0.source = origin.url("/film.mp4")
          $0.credential = nil
          $0.parameters = Array(#"{"toCredential":"s3","partSize":5242880}"#.utf8)
          ($0.connections, $0.rate) = (connections, rate)
        }
        harness.store.always(.completeUpload, .status(500))
        #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
        harness.store.script { _ in [] }
        let (gate, most) = (OriginGate(), Lock(0))
        origin.script("/film.mp4") { request in
          most.withLock { $0 = max($0, request.inProgress) }
          // The first tells the version.
          return request.range?.last == 65_535 ? [] : [.hold(after: 0, gate)]
        }
        async let outcome = harness.run(spec, from: ledger.last)
        try await eventually("parts are read") { most.withLock { $0 } == atOnce }
        gate.open()
        #expect(await outcome.failure == nil)
        #expect(most.withLock { $0 } == atOnce)
        #expect(harness.store.exchanges(.uploadPart).count == 6)
        #expect(harness.store.objects["films/film.mp4"]?.matches(file.content) == true)
      }
    }
  }

  private static func refusesCopy(_ request: StoreRequest) -> Bool {
    [.uploadPartCopy, .copyObject].contains(request.operation)
  }

  @Test("a copy that the store has refused to make keeps its limit and its remark after a stop")
  func refusedBefore() async throws {
    try await UploadHarness.run { harness in
      harness.store.put("films/source.mp4", bytes: Self.bytes())
      let (ledger, gate) = (UploadRecordingLedger(), OriginGate())
      var spec = Self.copy { $0.parameters = Array(#"{"partSize":5242880}"#.utf8) }
      harness.store.script { request in
        if Self.refusesCopy(request) { return [.status(501)] }
        guard request.operation == .uploadPart, request.ordinal > 2 else { return [] }
        return [.status(503, headers: [("Retry-After", "60")])]
      }
      // One part after the other, so that none is on its way when the run ends.
      var first = spec
      first.connections = 1
      #expect(await harness.run(first, ledger: ledger).failure?.class == .retry)

      let sent = harness.store.exchanges(.uploadPart).count
      harness.store.script { request in
        Self.refusesCopy(request) ? [.status(501)] : request.operation == .uploadPart ? [.holdAnswer(gate)] : []
      }
      // One part takes half of the time for which the parts that are sent at once may take.
      spec.rate = 3 << 20
      let run = Task { [spec] in await harness.run(spec, from: ledger.last, ledger: ledger) }
      await gate.reached()
      #expect(harness.store.exchanges(.uploadPart).count == sent + 1)
      run.cancel()
      #expect(await run.value == .stopped)
      gate.open()

      spec.rate = nil
      harness.store.script { Self.refusesCopy($0) ? [.status(501)] : [] }
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.object?.remark?.contains("through the worker") == true, "\(outcome)")
      #expect(harness.store.exchanges(.createUpload).count == 2)
      Self.expectThere(harness)
    }
  }

  @Test("a short object that the store has refused to copy keeps its remark if its lost answer is found out later")
  func refusedBeforeSmall() async throws {
    try await UploadHarness.run { harness in
      harness.store.put("films/source.mp4", bytes: Self.bytes(Self.small))
      let (spec, ledger) = (Self.copy { $0.ifExists = .replace }, UploadRecordingLedger())
      let isSent = Lock(false)
      harness.store.script { request in
        if Self.refusesCopy(request) { return [.status(501)] }
        if request.operation == .putObject {
          isSent.withLock { $0 = true }
          return [.closeAfterApplying]
        }
        // The run that has lost the answer cannot look.
        let isLook = request.operation == .headObject && isSent.withLock { $0 }
        return isLook ? [.status(503, headers: [("Retry-After", "60")])] : []
      }
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      harness.store.script { Self.refusesCopy($0) ? [.status(501)] : [] }
      let sent = harness.store.exchanges(.putObject).count
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.object?.remark?.contains("through the worker") == true, "\(outcome)")
      #expect(harness.store.exchanges(.putObject).count == sent)
      Self.expectThere(harness, Self.bytes(Self.small))
    }
  }

  @Test("a store that redirects to the object has its fields, and not those of the redirect", arguments: [small, size])
  func redirectedProperties(size: Int) async throws {
    let content = OriginFile(seed: 1, size: Int64(size))
    let mirror = try OriginServer()
    defer { mirror.close() }
    mirror.serve("/mirror.mp4", content)
    mirror.always("/mirror.mp4", .header("X-Amz-Meta-Title", "One"))
    try await UploadHarness.run { harness in
      harness.store.put("films/source.mp4", bytes: Self.bytes(size))
      let place = mirror.url("/mirror.mp4", host: "localhost")
      harness.store.script { request in
        request.operation == .getObject
          ? [.redirect(to: place), .header("Cache-Control", "no-store")]
          : [.uploadPartCopy, .copyObject].contains(request.operation) ? [.status(501)] : []
      }
      let outcome = await harness.run(Self.copy())
      #expect(outcome.failure == nil, "\(outcome)")
      let copy = try #require(harness.store.objects["films/film.mp4"])
      #expect(copy.headers == ["content-type": "video/mp4"])
      #expect(copy.metadata["title"] == "One")
    }
  }

  @Test(
    "a source whose signed URL expires in the middle is asked for another one", arguments: [400, 401, 403, 404, 410])
  func expiredPlace(status: Int) async throws {
    let content = OriginFile(seed: 1, size: Int64(Self.size))
    let origin = try OriginServer()
    defer { origin.close() }
    origin.serve("/source.mp4", content)
    for name in ["/signed/1", "/signed/2"] { origin.serve(name, content) }
    let (first, second) = (origin.url("/signed/1"), origin.url("/signed/2"))
    let isExpired = Lock(false)
    origin.script("/source.mp4") { _ in [.redirect(to: isExpired.withLock { $0 } ? second : first)] }
    origin.script("/signed/1") { request in
      if request.number > 1 { isExpired.withLock { $0 = true } }
      return request.number > 1 ? [.answer(status)] : []
    }
    try await UploadHarness.run { harness in
      let outcome = await harness.run(Self.copy { $0.source = origin.url("/source.mp4") })
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.objects["films/film.mp4"]?.bytes == content.bytes)
      #expect(!origin.exchanges("/signed/2").isEmpty)
    }
  }

  @Test(
    "a store that finds no such source to copy, or not this version, gets the bytes from the worker",
    arguments: [("NoSuchKey", 404), ("PreconditionFailed", 412), ("InvalidArgument", 400)])
  func unresolved(code: String, status: Int) async throws {
    try await UploadHarness.run { harness in
      let bytes = Self.bytes(Self.size)
      harness.store.put("films/source.mp4", bytes: bytes)
      harness.store.script { request in
        request.operation == .uploadPartCopy
          ? [.status(status, body: "<Error><Code>\(code)</Code><Message>no</Message></Error>")] : []
      }
      let outcome = await harness.run(Self.copy { $0.ifExists = .replace })
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.objects["films/film.mp4"]?.bytes == bytes)
    }
  }

  @Test("a source that is away for some seconds does not cost what a PUT has sent") func sourceAway() async throws {
    let content = OriginFile(seed: 1, size: 9 << 20)
    let origin = try OriginServer()
    defer { origin.close() }
    origin.serve("/source.mp4", content)
    // More than one read asks.
    let away = Lock(0)
    origin.script("/source.mp4") { request in
      guard request["range"]?.hasPrefix("bytes=0-") == false, request.number > 4 else { return [] }
      return away.withLock { count in
        count += 1
        return count <= 7 ? [.answer(503)] : []
      }
    }
    try await UploadHarness.run { harness in
      let spec = Self.copy {
        $0.source = origin.url("/source.mp4")
        $0.destination = harness.store.url("/put/film.mp4")
        $0.credential = nil
      }
      let outcome = await harness.run(spec)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.objects["put/film.mp4"]?.bytes == content.bytes)
      #expect(harness.store.exchanges(.put).count == 1 && away.withLock { $0 } > 7)
    }
  }
}
