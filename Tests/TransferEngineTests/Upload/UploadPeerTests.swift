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

  @Test("moto's S3") func moto() async throws {
    let store = try await MotoStore.start()
    defer { store.process.stop() }
    let objects = try await upload(to: store.account)
    #expect(objects.allSatisfy { $0.verified != .none }, "\(objects)")
  }
}
