import ReelhaulMessages
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Stores that refuse what they do not know, answers that prove nothing, and an end that is put off.
extension UploadS3Tests {
  /// Refusals of what a store does not know, with and without a word about it.
  static let refusals: [StoreFault] = [
    .status(501, body: "<Error><Code>NotImplemented</Code></Error>"),
    .status(400, body: "<Error><Code>NotImplemented</Code></Error>"),
    .status(400, body: "<Error><Code>InvalidArgument</Code></Error>"), .status(501),
  ]

  @Test(
    "a store that refuses every condition is sent none, keeps what is there, and the output says so",
    arguments: [small, size], refusals.indices)
  func refusesConditions(size: Int, refusal: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(size))
      harness.store.script { request in
        let isAsked = request["if-none-match"] != nil || request["if-match"] != nil
        return isAsked && request.method != "GET" ? [Self.refusals[refusal]] : []
      }
      for ifExists in [IfExists.fail, .skip] {
        let outcome = await harness.run(Self.spec { $0.ifExists = ifExists })
        #expect(outcome.object?.verified == .crc32c, "\(outcome)")
        #expect(outcome.object?.remark?.contains("the store refuses If-None-Match") == true, "\(outcome)")
        Self.expectThere(harness, Self.bytes(size))
        harness.store.delete("films/film.mp4")
      }
      #expect(harness.store.exchanges(.uploadPart).count == (size == Self.small ? 0 : 8))
      // It is known then.
      let last = harness.store.exchanges.last { [.putObject, .completeUpload].contains($0.operation) }
      #expect(last?.request["x-amz-checksum-crc32c"] != nil && last?.request["if-none-match"] == nil)
      #expect(S3Conditions.of("\(harness.store.url())/films") == .refused)
      harness.store.put("films/film.mp4", bytes: [1, 2, 3])
      #expect(await harness.run(Self.spec { _ in }).failure?.code == .destinationExists)
      Self.expectThere(harness, [1, 2, 3])
    }
  }

  @Test("after what came during an upload was in its way, the next run looks before it sends anything")
  func cameDuringAnUpload() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { [store = harness.store] request in
        if request.operation == .completeUpload { store.put("films/film.mp4", bytes: [1, 2, 3]) }
        return []
      }
      let (spec, ledger) = (Self.spec { _ in }, UploadRecordingLedger())
      #expect(await harness.run(spec, ledger: ledger).failure?.code == .destinationExists)
      let sent = harness.store.exchanges(.uploadPart).count
      #expect(sent > 0 && harness.store.uploads.isEmpty)
      let outcome = await harness.run(spec, from: ledger.last, ledger: ledger)
      #expect(outcome.failure?.code == .destinationExists)
      #expect(harness.store.exchanges(.uploadPart).count == sent)
      harness.store.script { _ in [] }
      harness.store.delete("films/film.mp4")
      #expect(await harness.run(spec, from: ledger.last).failure == nil)
      Self.expectThere(harness)
    }
  }

  @Test("what came while a store refused conditions is kept", arguments: [small, size])
  func cameWhileRefused(size: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(size))
      harness.store.script { [store = harness.store] request in
        guard request["if-none-match"] != nil else { return [] }
        store.put("films/film.mp4", bytes: [1, 2, 3])
        return [.status(501)]
      }
      #expect(await harness.run(Self.spec { _ in }).failure?.code == .destinationExists)
      Self.expectThere(harness, [1, 2, 3])
    }
  }

  @Test("an object of more than a MiB is not sent twice only to ask its store") func tooLargeToAsk() async throws {
    try await upload(Self.bytes(2 << 20), spec: Self.spec { _ in }, script: { _ in [] }).run { harness, outcome in
      #expect(outcome.object != nil && outcome.object?.remark == nil, "\(outcome)")
      #expect(harness.store.exchanges(.putObject).map(\.status) == [404, 200])
      // A smaller one asks.
      try harness.put(Self.bytes(Self.small))
      #expect(await harness.run(Self.spec { $0.destination = "s3://films/small.mp4" }).failure == nil)
      #expect(harness.store.exchanges(.putObject).map(\.status) == [404, 200, 200, 412])
    }
  }

  @Test("a refusal that has another reason teaches nothing about conditions or checksums")
  func otherRefusal() async throws {
    try await upload(
      Self.bytes(Self.small), spec: Self.spec { _ in },
      script: { $0.operation == .putObject ? [Self.refusals[2]] : [] }
    ).run { harness, outcome in
      #expect(outcome.failure?.code.rawValue == "s3_invalid_argument", "\(outcome)")
      #expect(S3Conditions.of("\(harness.store.url())/films") == nil)
    }
  }

  @Test(
    "a store that refuses the checksum of a small file or of a part goes without it, and nothing else is learned",
    arguments: [small, size], refusals.indices)
  func refusesChecksums(size: Int, refusal: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(size))
      harness.store.script { request in
        let brings = [.putObject, .uploadPart].contains(request.operation)
        return brings && request["x-amz-checksum-crc32c"] != nil ? [Self.refusals[refusal]] : []
      }
      let ledger = UploadRecordingLedger()
      let outcome = await harness.run(Self.spec { _ in }, ledger: ledger)
      // The harness's store tells that of a part which it was not sent.
      #expect(outcome.object?.verified == (size == Self.small ? .md5 : .crc32c), "\(outcome)")
      #expect(outcome.object?.remark == nil)
      Self.expectThere(harness, Self.bytes(size))
      let session = try ledger.last?.session.map { try S3Target.Session($0) }
      #expect(session?.hasChecksums == (size == Self.small))
      #expect([.proven, .honoured].contains(S3Conditions.of("\(harness.store.url())/films")))
    }
  }

  @Test(
    "a store that refuses checksums of parts at the end gets it without them", arguments: [IfExists.fail, .replace])
  func refusesChecksumsAtEnd(ifExists: IfExists) async throws {
    try await upload(
      spec: Self.spec { $0.ifExists = ifExists },
      script: { request in
        switch request.operation {
        case .completeUpload: [.refuseChecksumsAtEnd]
        // It makes none of the whole.
        case .createUpload where request["x-amz-checksum-type"] != nil: [.status(400)]
        default: []
        }
      }
    ).run { harness, outcome in
      #expect(outcome.object?.verified == .crc32c && outcome.object?.remark == nil, "\(outcome)")
      #expect(harness.store.exchanges(.uploadPart).count == 4)
      Self.expectThere(harness)
    }
  }

  @Test(
    "a small file is not taken for stored because of a success that proves nothing, and teaches nothing",
    arguments: [
      "<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>", "<!DOCTYPE html><html>Welcome<br></html>", "",
    ], [IfExists.fail, .replace])
  func storedNothing(body: String, ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      // Without a page, what is in its place may have replaced it at once.
      if ifExists == .replace, !body.isEmpty { harness.store.put("films/film.mp4", bytes: [1, 2, 3]) }
      harness.store.script { request in
        let lies = request.operation == .putObject && request.ordinal == 1
        return lies ? [.status(200, headers: [("ETag", "\"abc\"")], body: body)] : []
      }
      let (spec, ledger) = (Self.spec { $0.ifExists = ifExists }, UploadRecordingLedger())
      var outcome = await harness.run(spec, ledger: ledger)
      if body.isEmpty {
        #expect(outcome.failure?.class == .retry, "\(outcome)")
        #expect(S3Conditions.of("\(harness.store.url())/films") == nil)
        outcome = await harness.run(spec, from: ledger.last)
      }
      #expect(outcome.object?.verified == .crc32c && outcome.object?.remark == nil, "\(outcome)")
      Self.expectThere(harness, Self.bytes(Self.small))
    }
  }

  @Test("an upload that the store does not let go at once is given up nevertheless, and a refusal is heeded")
  func givenUpLater() async throws {
    var options = StoreOptions()
    options.minimumPartSize = Int64(Self.part + 1)
    for (fault, isGone) in [(StoreFault.status(500), true), (.closeBeforeReading, true), (.status(403), false)] {
      try await upload(
        options: options, script: { $0.operation == .abortUpload && $0.ordinal == 1 ? [fault] : [] }
      ).run { harness, outcome in
        #expect(outcome.failure?.code.rawValue == "s3_entity_too_small", "\(outcome)")
        #expect(harness.store.uploads.isEmpty == isGone, "\(fault)")
        #expect(harness.store.exchanges(.abortUpload).count == (isGone ? 2 : 1), "\(fault)")
      }
    }
  }
}
