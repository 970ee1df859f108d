import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What is given up, and requests that had to wait.
extension UploadS3Tests {
  @Test("giving up an upload ends with its task, however long the store says nothing", .timeLimit(.minutes(1)))
  func abortIsCanceled() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (parts, answer) = (OriginGate(), OriginGate())
      harness.store.script { request in
        switch request.operation {
        case .uploadPart: [.holdAnswer(parts)]
        case .abortUpload: [.holdAnswer(answer)]
        default: []
        }
      }
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      await harness.stop(spec, at: parts, ledger: ledger)
      let checkpoint = try #require(ledger.last)
      let abort = Task { try await harness.engine.abort(spec, from: checkpoint) }
      await answer.reached()
      abort.cancel()
      await #expect(throws: (any Error).self) { try await abort.value }
      answer.open()
    }
  }

  @Test("an upload of which the store still lists parts is given up once more") func abortIsRepeated() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let gate = OriginGate()
      harness.store.script { request in
        switch request.operation {
        case .uploadPart: [.holdBody(after: 0, gate)]
        // As if a part had been stored after it.
        case .abortUpload where request.ordinal == 1: [.status(204)]
        case .listParts: [.listPartsExtra]
        default: []
        }
      }
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      await harness.stop(spec, at: gate, ledger: ledger)
      try await harness.engine.abort(spec, from: #require(ledger.last))
      #expect(harness.store.exchanges(.abortUpload).count == 2 && harness.store.uploads.isEmpty)
    }
  }

  @Test("a store that refuses the question for a checksum is asked without it", arguments: [false, true])
  func refusesMode(isSmall: Bool) async throws {
    try await UploadHarness.run { harness in
      let size = isSmall ? Self.small : Self.bytes().count
      try harness.put(Self.bytes(size))
      harness.store.script { request in
        guard request["x-amz-checksum-mode"] != nil else { return [] }
        let why =
          "<Error><Code>InvalidArgument</Code><Message>Unsupported header 'x-amz-checksum-mode'</Message></Error>"
        return [.status(400, body: request.method == "HEAD" ? "" : why)]
      }
      #expect(await harness.run(Self.spec()).failure == nil)
      #expect(harness.store.objects.values.map(\.size) == [Int64(size)])
    }
  }

  @Test("keys of a program that were taken back are renewed before an object could be replaced") func keysThatAreGone()
    async throws
  {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      #expect(await harness.run(Self.spec()).failure == nil)
      S3Conditions.learn(.ignored, of: "\(harness.store.url())/films")
      try harness.renew(token: "former")
      harness.store.script { request in
        guard request["x-amz-security-token"] == "former" else { return [] }
        try? harness.renew(token: "new")
        let why = "<Error><Code>InvalidAccessKeyId</Code><Message>gone</Message></Error>"
        return [.status(403, body: request.method == "HEAD" ? "" : why)]
      }
      let before = harness.store.exchanges(.putObject).count
      #expect(await harness.run(Self.spec { $0.id = .random() }).failure?.code == .destinationExists)
      #expect(harness.store.exchanges(.putObject).count == before)
    }
  }

  @Test("keys of a program that the store has refused are not taken from memory") func keysOfProgram() async throws {
    try await UploadHarness.run { harness in
      let path = "\(harness.directory.path)/credentials.json"
      let command = #""command": ["/bin/cat", "\#(path).told"], "s3": {"endpoint": "\#(harness.store.url())"}"#
      try TextFile.write(#"{"s3": {\#(command), "allowHTTP": true}}"#, to: path, mode: 0o600)
      let tell: @Sendable (String) throws -> Void = { token in
        let keys = #""AccessKeyId": "AKIATEST", "SecretAccessKey": "secret", "SessionToken": "\#(token)""#
        try TextFile.write(#"{"Version": 1, \#(keys)}"#, to: "\(path).told")
      }
      try tell("first")
      try harness.put(Self.bytes(Self.small))
      harness.store.script { request in
        guard request["x-amz-security-token"] == "first" else { return [] }
        try? tell("second")
        return [.expiredToken]
      }
      let outcome = await harness.run(Self.spec())
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.putObject).last?.request["x-amz-security-token"] == "second")
      Self.expectThere(harness, Self.bytes(Self.small))
    }
  }

  @Test("what one request makes needs no credential to be given up") func abortWithoutCredential() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      var (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure == nil)
      spec.credential = "gone"
      try await harness.engine.abort(spec, from: #require(ledger.last))
    }
  }

  @Test("a request that waited for its connection is signed when it has it") func signsLate() async throws {
    try await UploadHarness.run(hostConnections: 1) { harness in
      try harness.put(Self.bytes(Self.small))
      let gate = OriginGate()
      harness.store.script { $0.operation == .putObject && $0.ordinal == 1 ? [.holdAnswer(gate)] : [] }
      async let first = harness.run(Self.spec())
      await gate.reached()
      let held = harness.store.exchanges.count
      async let second = harness.run(
        Self.spec {
          $0.ifExists = .replace
          $0.destination = "s3://films/other.mp4"
        })
      try await Task.sleep(for: .seconds(3))
      #expect(harness.store.exchanges.count == held)
      gate.open()
      #expect(await first.failure == nil)
      #expect(await second.failure == nil)
      let times = harness.store.exchanges.compactMap { $0.request["x-amz-date"] }
      // 20261129T060000Z: the seconds of two signatures differ, unless both were made before the wait.
      #expect(Set(times.prefix(held)).isDisjoint(with: times.dropFirst(held)), "\(times)")
    }
  }

  @Test("bytes that were damaged on the way are sent again with their checksum", arguments: [small, size])
  func damagedOnTheWay(size: Int) async throws {
    let fault = StoreFault.status(
      400,
      body: """
        <Error><Code>XAmzContentChecksumMismatch</Code>\
        <Message>The provided 'x-amz-checksum' header does not match what was computed.</Message></Error>
        """)
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(size))
      harness.store.script {
        [.putObject, .uploadPart].contains($0.operation) && $0.ordinal == 1 ? [fault] : []
      }
      let outcome = await harness.run(Self.spec())
      #expect(outcome.object?.verified == .crc32c, "\(outcome)")
      let sent = harness.store.exchanges.filter { [.putObject, .uploadPart].contains($0.operation) }
      #expect(sent.allSatisfy { $0.request["x-amz-checksum-crc32c"] != nil })
    }
  }

  @Test("the own object that was to be replaced, and is gone, leaves the place free") func replacedIsGone() async throws
  {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      let spec = Self.spec { $0.ifExists = .fail }
      let ledger = UploadRecordingLedger()
      #expect(await harness.run(spec, ledger: ledger).failure == nil)
      let bytes = Self.bytes(Self.small - 1)
      try harness.put(bytes)
      harness.store.script { [store = harness.store] request in
        guard request.operation == .putObject, request["if-match"] != nil, request["if-none-match"] == nil else {
          return []
        }
        store.delete("films/film.mp4")
        return [.status(404, body: "<Error><Code>NoSuchKey</Code></Error>")]
      }
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness, bytes)
      #expect(harness.store.exchanges.contains { $0.request["if-match"] != nil && $0.status == 404 })
    }
  }
}
