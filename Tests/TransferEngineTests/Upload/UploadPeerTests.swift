import ReelhaulCodec
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Uploads to real stores, read back by boto3.
@Suite struct UploadPeerTests {
  private static let all = OriginContent(seed: 7).bytes(0..<Int64(20_000_001))

  private func upload(to account: S3Account) async throws -> [UploadedObject] {
    let boto = S3Reference(account)
    try await boto.createBucket("films")
    var objects: [UploadedObject] = []
    try await UploadHarness.run { harness in
      try harness.use(account)
      for (key, size) in [("small.mp4", 100_000), ("parts.mp4", 20_000_001)] {
        let bytes = Array(Self.all[..<size])
        try harness.put(bytes)
        var spec = TaskSpec(
          id: .random(), kind: .upload, source: UploadHarness.source, destination: "s3://films/\(key)")
        spec.credential = "s3"
        // The first run ends before it finishes the upload, and the next finds its parts.
        let ledger = UploadRecordingLedger { if $0.isPublishing, key == "parts.mp4" { throw TestFleetError("killed") } }
        let first = await harness.run(spec, ledger: ledger)
        #expect((first.failure == nil) == (key == "small.mp4"), "\(first)")
        let outcome = key == "small.mp4" ? first : await harness.run(spec, from: ledger.last)
        let object = try #require(outcome.object, "\(key): \(outcome)")
        objects.append(object)
        let there = try await boto.get("films", key)
        let expected = Hex.encode(digest(.sha256, of: bytes))
        #expect(there.sha256 == expected, "\(key)")
        #expect(there.metadata["reelhaul-task"] == "\(spec.id)")
        // Another task does not replace it.
        spec.id = .random()
        let again = await harness.run(spec)
        #expect(again.failure?.code == .destinationExists, "\(again)")
      }
    }
    return objects
  }

  @Test("rclone's S3, which ignores conditions: the output says so") func rclone() async throws {
    let store = try await RcloneStore.start()
    defer { store.process.stop() }
    let objects = try await upload(to: store.account)
    #expect(objects.allSatisfy { $0.remark?.contains("does not look") == true }, "\(objects)")
  }

  @Test("SeaweedFS's S3") func seaweed() async throws {
    let store = try await SeaweedStore.start()
    defer { store.process.stop() }
    let objects = try await upload(to: store.account)
    #expect(objects.allSatisfy { $0.remark == nil && $0.verified != .none }, "\(objects)")
  }

  /// Stops the first run in the middle. Returns the outcome of the next, and where the first ended.
  private func uploadTwice(
    to destination: String, _ bytes: [UInt8] = Self.all
  ) async throws -> (UploadOutcome, stopped: UploadCheckpoint?) {
    let result = Lock<(UploadOutcome, stopped: UploadCheckpoint?)?>(nil)
    try await UploadHarness.run { harness in
      try harness.put(bytes)
      var spec = TaskSpec(
        id: .random(), kind: .upload, source: UploadHarness.source, destination: destination, ifExists: .replace)
      spec.rate = 3 << 20
      let (spec1, ledger) = (spec, UploadRecordingLedger())
      let run = Task { await harness.run(spec1, ledger: ledger) }
      try await eventually("more than a request is sent") { ledger.progress.last ?? 0 > 8_500_000 }
      run.cancel()
      let first = await run.value
      #expect(first == .stopped)
      spec.rate = nil
      var outcome = await harness.run(spec, from: ledger.last)
      // SeaweedFS keeps its lock for some time.
      for _ in 0..<60 where outcome.failure?.class == .wait {
        try await Task.sleep(for: .milliseconds(500))
        outcome = await harness.run(spec, from: ledger.last)
      }
      result.withLock { [outcome] in $0 = (outcome, ledger.last) }
    }
    return try #require(result.withLock { $0 })
  }

  @Test("tussi, which moves a whole file away") func tussi() async throws {
    let server = try await TusServer.start(.tussi)
    defer { server.process.stop() }
    let (outcome, stopped) = try await uploadTwice(to: "tus+\(server.url)")
    #expect(outcome.object?.verified == UploadVerification.none && outcome.object?.remark != nil, "\(outcome)")
    let isThere = try server.files().count { $0 == Self.all } == 1
    #expect(isThere)
    // The same upload went on.
    let session = String(decoding: stopped?.session ?? [], as: UTF8.self)
    let name = (outcome.object?.location ?? "-").split(separator: "/").last.map(String.init) ?? "-"
    #expect(session.contains(name))
  }

  @Test("SeaweedFS's tus") func seaweedTus() async throws {
    let store = try await SeaweedStore.start()
    defer { store.process.stop() }
    let (outcome, _) = try await uploadTwice(to: "tus+\(store.tusURL)/films/tus.mp4")
    #expect(outcome.failure == nil, "\(outcome)")
    let read = try await CurlCommand.run(store.filerURL + "/films/tus.mp4")
    let isThere = read.body == Self.all
    #expect(isThere)
  }

  @Test("nginx takes a PUT, and one that was interrupted is sent again") func nginx() async throws {
    let server = try await NginxDAV.start()
    defer { server.stop() }
    let (outcome, _) = try await uploadTwice(to: server.url("/new/film.mp4"))
    #expect(outcome.object?.verified == .size, "\(outcome)")
    let read = try await CurlCommand.run(server.url("/new/film.mp4"))
    let isThere = read.body == Self.all
    #expect(isThere)
  }

  @Test("moto's S3") func moto() async throws {
    let store = try await MotoStore.start()
    defer { store.process.stop() }
    let objects = try await upload(to: store.account)
    #expect(objects.allSatisfy { $0.verified != .none }, "\(objects)")
  }
}
