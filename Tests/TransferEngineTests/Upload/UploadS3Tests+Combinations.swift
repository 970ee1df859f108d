import ReelhaulCurl
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

// What two things at once may do to an upload.
extension UploadS3Tests {
  @Test("an object that comes during an upload that skips is kept, and skipped", arguments: [small, size])
  func skipsWhatCame(size: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(size))
      harness.store.script { [store = harness.store] request in
        let isFirst = [.putObject, .uploadPart].contains(request.operation) && request.ordinal == 1
        if isFirst { store.put("films/film.mp4", bytes: [1, 2, 3]) }
        return []
      }
      let outcome = await harness.run(Self.spec { $0.ifExists = .skip })
      #expect(outcome.failure == nil && outcome.object?.size == 3, "\(outcome)")
      Self.expectThere(harness, [1, 2, 3])
    }
  }

  @Test("parts stand in no line for connections: a small file need not wait behind them") func leavesRoom() async throws
  {
    try await UploadHarness.run(hostConnections: 2) { harness in
      try harness.put(Self.bytes())
      let gate = OriginGate()
      harness.store.script { $0.operation == .uploadPart ? [.holdAnswer(gate)] : [] }
      async let large = harness.run(Self.spec { $0.connections = 16 })
      await gate.reached()
      try await Task.sleep(for: .milliseconds(500))
      let server = try #require(CurlURL(harness.store.account.endpoint)?.server)
      let line = harness.roots.hosts.waiting(for: server)
      gate.open()
      #expect(await large.failure == nil)
      #expect(harness.store.exchanges(.uploadPart).count > 2 && line == 0)
    }
  }

  @Test("an object that comes during an upload in parts is kept, although the store looks at conditions of small files")
  func joinsBlindly() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      #expect(await harness.run(Self.spec { _ in }).failure == nil)
      harness.store.delete("films/film.mp4")
      try harness.put(Self.bytes())
      harness.store.script { [store = harness.store] request in
        if request.operation == .uploadPart, request.ordinal == 1 { store.put("films/film.mp4", bytes: [1, 2, 3]) }
        return request.operation == .completeUpload ? [.ignoreIfNoneMatch] : []
      }
      let outcome = await harness.run(Self.spec { _ in })
      #expect(outcome.failure?.code == .destinationExists, "\(outcome)")
      Self.expectThere(harness, [1, 2, 3])
    }
  }

  @Test(
    "a gateway's 404 does not cost the upload",
    arguments: [StoreOperation.uploadPart, .listParts, .completeUpload])
  func gatewayLosesItsWay(operation: StoreOperation) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec { _ in }, UploadRecordingLedger())
      let isLost = Lock(true)
      harness.store.script { request in
        if operation == .listParts, request.operation == .completeUpload, isLost.withLock({ $0 }) {
          return [.status(500)]
        }
        guard request.operation == operation, isLost.withLock({ $0 }) else { return [] }
        return [.status(404, body: "<html><body>no such page</body></html>")]
      }
      for _ in 1...2 {
        let failure = await harness.run(spec, from: ledger.last, ledger: ledger).failure
        #expect(failure?.class == .retry, "\(String(describing: failure))")
      }
      isLost.withLock { $0 = false }
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.createUpload).count == 1)
      Self.expectThere(harness)
    }
  }

  @Test("a small file that arrived damaged is replaced, and nothing else is", arguments: [IfExists.fail, .replace])
  func damagedSmall(ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      let damage: @Sendable () -> Void = { [store = harness.store] in
        guard let there = store.objects["films/film.mp4"] else { return }
        var other = StoreObject(pieces: [StorePiece(bytes: [UInt8](repeating: 1, count: Self.small))])
        other.metadata = there.metadata
        store.put("films/film.mp4", other)
      }
      harness.store.script { request in
        // One with both conditions only asks whether the store looks at them.
        guard request.operation == .putObject, request["if-match"] == nil || request["if-none-match"] == nil else {
          return []
        }
        damage()
        return request.ordinal <= 2 ? [.wrongETag] : []
      }
      let ledger = UploadRecordingLedger()
      let spec = Self.spec {
        $0.ifExists = ifExists
        $0.parameters = Array(#"{"checksum": "none"}"#.utf8)
      }
      let outcome = await harness.run(spec, ledger: ledger)
      #expect(outcome.failure == nil && outcome.object?.verified == .md5, "\(outcome)")
      Self.expectThere(harness, Self.bytes(Self.small))

      // The next run of a task whose last try was damaged.
      damage()
      harness.store.script { _ in [] }
      #expect(await harness.run(spec, from: ledger.last).failure == nil)
      Self.expectThere(harness, Self.bytes(Self.small))
    }
  }

  @Test("keys that were replaced during an upload are read anew, and nothing is sent twice")
  func replacedKeys() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      try harness.renew(token: "first")
      harness.store.script { [harness] request in
        guard request.operation == .completeUpload, request["x-amz-security-token"] == "first" else { return [] }
        try? harness.renew(token: "second")
        return [.status(403, body: "<Error><Code>InvalidAccessKeyId</Code></Error>")]
      }
      let outcome = await harness.run(Self.spec { _ in })
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.uploadPart).count == 4)
      Self.expectThere(harness)
    }
  }

  @Test("wrong keys are asked for once more, and fail the task") func wrongKeys() async throws {
    try await upload(script: { _ in [.status(403, body: "<Error><Code>InvalidAccessKeyId</Code></Error>")] }).run {
      harness, outcome in
      #expect(outcome.failure?.code.rawValue == "s3_invalid_access_key_id" && outcome.failure?.class == .fail)
      #expect(harness.store.exchanges.count <= 2, "\(harness.store.exchanges.map(\.operation))")
    }
  }

  @Test("an upload to a store that keeps no metadata is joined once, and sent once") func keepsNoMetadata() async throws
  {
    try await upload(
      spec: Self.spec { _ in },
      script: { $0.operation == .headObject ? [.header("x-amz-meta-reelhaul-task", nil)] : [] }
    ).run { harness, outcome in
      #expect(outcome.object?.size == Int64(Self.size), "\(outcome)")
      #expect(harness.store.exchanges(.uploadPart).count == 4)
      #expect(harness.store.exchanges(.completeUpload).count { $0.wasApplied } == 1)
      Self.expectThere(harness)
    }
  }

  @Test(
    "where a store forgets metadata and an answer is lost, the bytes tell whose the object is",
    arguments: [small, size], [true, false])
  func forgottenMetadata(size: Int, ignores: Bool) async throws {
    for (isOthers, isNextRun) in [(false, false), (false, true), (true, false), (true, true)] {
      try await UploadHarness.run { harness in
        S3Conditions.learn(ignores ? .ignored : .honoured, of: "\(harness.store.url())/films")
        let bytes = Self.bytes(size)
        try harness.put(bytes)
        let makes: StoreOperation = size == Self.small ? .putObject : .completeUpload
        let (isLost, isOver) = (Lock(false), Lock(false))
        harness.store.script { [store = harness.store] request in
          if request.operation == .headObject { return [.header("x-amz-meta-reelhaul-task", nil)] }
          guard request.operation == makes else { return [] }
          if isOver.withLock({ $0 }) { return ignores ? [.ignoreIfNoneMatch] : [] }
          let isFirst = isLost.withLock { isLost in
            defer { isLost = true }
            return !isLost
          }
          if isFirst { return [.closeAfterApplying] }
          if isNextRun { return [.status(503, headers: [("Retry-After", "60")])] }
          if isOthers { store.put("films/film.mp4", bytes: bytes.reversed()) }
          return ignores ? [.ignoreIfNoneMatch] : []
        }
        let (spec, ledger) = (Self.spec { $0.ifExists = .fail }, UploadRecordingLedger())
        var outcome = await harness.run(spec, ledger: ledger)
        if outcome.failure?.class == .retry {
          if isOthers { harness.store.put("films/film.mp4", bytes: bytes.reversed()) }
          isOver.withLock { $0 = true }
          outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
        }
        if harness.store.objects["films/film.mp4"]?.bytes == bytes {
          #expect(outcome.failure == nil && outcome.object?.verified == .crc32c, "\(outcome)")
        } else {
          #expect(outcome.failure?.code == .destinationExists, "\(outcome)")
        }
      }
    }
  }

  @Test("who may not list parts sends them again to the same upload") func mayNotListParts() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script {
        $0.operation == .uploadPart && $0.ordinal > 2 ? [.status(503, headers: [("Retry-After", "60")])] : []
      }
      let (spec, ledger) = (Self.spec { _ in }, UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      harness.store.script {
        $0.operation == .listParts ? [.status(403, body: "<Error><Code>AccessDenied</Code></Error>")] : []
      }
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.createUpload).count == 1)
      Self.expectThere(harness)
    }
  }

  @Test("a store's error shows neither the secret key nor the session token") func echoedSecrets() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      try harness.renew(token: "token+of/session==")
      let secret = harness.store.account.secretAccessKey
      harness.store.script { _ in
        let message = "\(String(repeating: "x", count: 290))token+of/session== and \(secret)"
        return [.status(403, body: "<Error><Code>AccessDenied</Code><Message>\(message)</Message></Error>")]
      }
      let failure = await harness.run(Self.spec { _ in }).failure
      #expect(failure?.code.rawValue == "s3_access_denied")
      #expect(failure?.message.contains("xxx•••") == true)
      #expect(failure?.message.contains("token+") == false)
      #expect(failure?.message.contains(secret.prefix(4)) == false)
    }
  }

  @Test(
    "an error inside a success means what it says",
    arguments: ["InvalidPart", "NoSuchUpload", "NoSuchKey", "ConditionalRequestConflict", "PreconditionFailed"])
  func errorInside(code: String) async throws {
    try await upload(
      spec: Self.spec { _ in },
      script: { $0.operation == .completeUpload && $0.ordinal == 2 ? [.lieComplete200WithError(code: code)] : [] }
    ).run { harness, outcome in
      // Nothing was in the way.
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  @Test("a store that refuses a condition that no object meets within a success looks at conditions")
  func refusedQuestionInside() async throws {
    try await upload(
      spec: Self.spec { _ in },
      script: { $0["if-match"] == nil ? [] : [.lieComplete200WithError(code: "NoSuchKey")] }
    ).run { harness, outcome in
      #expect(outcome.object != nil && outcome.object?.remark == nil, "\(outcome)")
      #expect(harness.store.exchanges(.completeUpload).count == 2)
      Self.expectThere(harness)
    }
  }

  @Test("an object that is in the way and is not there is no object that exists", arguments: [small, size])
  func inTheWayAndAbsent(size: Int) async throws {
    try await upload(
      Self.bytes(size), spec: Self.spec { _ in },
      script: { request in
        let makes = [.putObject, .completeUpload].contains(request.operation)
        return makes && request.ordinal <= 3 ? [.preconditionFailed412] : []
      }
    ).run { harness, outcome in
      #expect(outcome.object != nil, "\(outcome)")
      #expect(harness.store.exchanges(.uploadPart).count == (size == Self.small ? 0 : 4))
      Self.expectThere(harness, Self.bytes(size))
    }
  }

  @Test("an upload that is always told of an object that is not there fails with that, and may be tried again")
  func alwaysInTheWayAndAbsent() async throws {
    try await upload(
      spec: Self.spec { _ in }, script: { $0.operation == .completeUpload ? [.preconditionFailed412] : [] }
    ).run { harness, outcome in
      #expect(outcome.failure?.class == .retry, "\(outcome)")
      #expect(outcome.failure?.message.contains("shows none") == true, "\(outcome)")
      // The next attempt goes on with it.
      #expect(harness.store.uploads.count == 1)
    }
  }
}
