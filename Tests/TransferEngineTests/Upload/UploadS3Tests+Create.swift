import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What a store may do to the beginning of an upload.
extension UploadS3Tests {
  @Test(
    "a lost, damaged or failing answer to the beginning leaves no upload behind",
    arguments: [
      StoreFault.closeAfterApplying, .truncatedXML, .status(200, body: "<Error><Code>InternalError</Code></Error>"),
    ])
  func lostCreate(fault: StoreFault) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .createUpload && $0.ordinal == 1 ? [fault] : [] }
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      let first = await harness.run(spec, ledger: ledger)
      #expect(first.failure?.class == .retry, "\(first)")
      let second = await harness.run(spec, from: ledger.last)
      #expect(second.failure == nil, "\(second)")
      Self.expectThere(harness)
    }
  }

  @Test(
    "a lost answer to the beginning leaves no upload behind where the store has another time", arguments: [7200, -7200])
  func lostCreateAndSkew(seconds: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { request in
        // The first is refused, and tells the time.
        let isLost = request.operation == .createUpload && request.ordinal == 2
        return [.clockSkew(seconds: seconds)] + (isLost ? [.closeAfterApplying] : [])
      }
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      #expect(harness.store.uploads.count == 1)
      harness.store.script { _ in [.clockSkew(seconds: seconds)] }
      #expect(await harness.run(spec, from: ledger.last).failure == nil)
      Self.expectThere(harness)
    }
  }

  @Test("what another task has begun for the same key is left alone after a lost answer")
  func lostCreateBesideAnother() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let gate = OriginGate()
      harness.store.script { $0.operation == .uploadPart && $0.partNumber == 2 ? [.holdBody(after: 1000, gate)] : [] }
      let other = Task { await harness.run(Self.spec()) }
      await gate.reached()
      try await eventually("a part is there") { harness.store.uploads.values.contains { !$0.parts.isEmpty } }
      let begun = harness.store.exchanges(.createUpload).count
      harness.store.script { $0.operation == .createUpload && $0.ordinal == begun + 1 ? [.closeAfterApplying] : [] }
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      #expect(await harness.run(spec, from: ledger.last).failure == nil)
      let open = harness.store.uploads.count
      #expect(open == 1)
      gate.open()
      let outcome = await other.value
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
      // On a connection that was used before, the client would repeat a creation without an answer by itself.
      var used: Set<Int> = []
      for exchange in harness.store.exchanges {
        let isFirst = used.insert(exchange.request.connection).inserted
        #expect(isFirst || exchange.operation != .createUpload, "a creation has a connection of its own")
      }
    }
  }

  @Test(
    "a lost answer to the beginning ends nothing where the uploads, or their parts, are not listed",
    arguments: [
      (StoreOperation.listUploads, StoreFault.status(403)), (.listUploads, .status(501)), (.listParts, .status(403)),
      (.listParts, .noSuchUpload),
    ])
  func lostCreateWithoutList(operation: StoreOperation, fault: StoreFault) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { request in
        switch request.operation {
        case .createUpload where request.ordinal == 1: [.closeAfterApplying]
        case operation: [fault]
        default: []
        }
      }
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let second = await harness.run(spec, from: ledger.last)
      #expect(second.failure == nil, "\(second)")
      try await harness.engine.abort(spec, from: #require(ledger.last))
    }
  }

  /// Loses the first answer to the creation, and then tells of these uploads and, of each, these parts.
  private static func lostCreate(
    parts: StoreFault, uploads: @escaping @Sendable (StoreRequest) -> String
  ) -> StoreServer.Script {
    { request in
      switch request.operation {
      case .createUpload where request.ordinal == 1: [.closeAfterApplying]
      case .listUploads:
        [.status(200, body: "<ListMultipartUploadsResult>\(uploads(request))</ListMultipartUploadsResult>")]
      case .listParts: [parts]
      default: []
      }
    }
  }

  @Test("a list of uploads to the key that does not end is not read to the end, and what is in it is not kept")
  func endlessList() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script(
        Self.lostCreate(parts: .noSuchUpload) { request in
          let begun = Timestamp(microseconds: Clocks.realtimeMicroseconds())
          let uploads = (0..<1000).map { number in
            """
            <Upload><Key>film.mp4</Key><UploadId>\(request.ordinal)-\(number)</UploadId>\
            <Initiated>\(begun)</Initiated></Upload>
            """
          }
          let next = """
            <IsTruncated>true</IsTruncated><NextKeyMarker>film.mp4</NextKeyMarker>\
            <NextUploadIdMarker>\(request.ordinal)</NextUploadIdMarker>
            """
          return next + uploads.joined()
        })
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let second = await harness.run(spec, from: ledger.last)
      #expect(second.failure == nil, "\(second)")
      #expect(harness.store.exchanges(.listUploads).count == 1)
      #expect(harness.store.exchanges(.listParts).count == 1000)
    }
  }

  @Test("an empty upload that was begun long before or after is somebody else's, and stays", arguments: [-3600, 3600])
  func olderUpload(seconds: Int64) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script(
        Self.lostCreate(parts: .status(200, body: "<ListPartsResult></ListPartsResult>")) { _ in
          let begun = Timestamp(microseconds: Clocks.realtimeMicroseconds() + seconds * 1_000_000)
          return "<Upload><Key>film.mp4</Key><UploadId>other</UploadId><Initiated>\(begun)</Initiated></Upload>"
        })
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let second = await harness.run(spec, from: ledger.last)
      #expect(second.failure == nil, "\(second)")
      #expect(harness.store.exchanges(.listUploads).count == 1 && harness.store.exchanges(.abortUpload).isEmpty)
    }
  }

  @Test("a source that changes after a lost answer to the beginning leaves no upload") func lostCreateAndChanged()
    async throws
  {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .createUpload && $0.ordinal == 1 ? [.closeAfterApplying] : [] }
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let other = OriginContent(seed: 9).bytes(0..<Int64(Self.size))
      try write(other, to: "\(harness.sourcePath).new")
      rename("\(harness.sourcePath).new", harness.sourcePath)
      let second = await harness.run(spec, from: ledger.last)
      #expect(second.failure == nil, "\(second)")
      Self.expectThere(harness, other)
    }
  }

  @Test("an upload whose beginning is answered after the run was stopped, or lost its task, is given up")
  func stoppedWhileCreating() async throws {
    for isRevoked in [false, true] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        let gate = OriginGate()
        harness.store.always(.createUpload, .holdAnswer(gate))
        let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
        let run = Task { await harness.run(spec, ledger: ledger) }
        await gate.reached()
        if isRevoked { ledger.revoke() } else { run.cancel() }
        if !isRevoked { #expect(await run.value == .stopped) }
        #expect(harness.store.uploads.count == 1)
        gate.open()
        #expect(await run.value == .stopped)
        try await eventually("nothing is left") { harness.store.uploads.isEmpty }
      }
    }
  }

  @Test("a credential that may only write uploads once, of one part and of many", arguments: [size, small])
  func writeOnly(size: Int) async throws {
    for isEncrypted in [false, true] {
      try await upload(
        Self.bytes(size),
        script: { request in
          switch request.operation {
          case .headObject: [.status(403)]
          case .putObject where isEncrypted:
            [.header("ETag", "\"of-an-encrypted-object\""), .header("x-amz-checksum-crc32c", nil)]
          default: []
          }
        }
      ).run { harness, outcome in
        #expect(outcome.failure == nil, "\(outcome)")
        #expect(outcome.object?.etag != nil)
        #expect(harness.store.exchanges(.completeUpload).count == (size == Self.size ? 1 : 0))
        #expect(harness.store.exchanges(.putObject).count == (size == Self.size ? 0 : 1))
        Self.expectThere(harness, Self.bytes(size))
      }
    }
  }
}
