import ReelhaulCodec
import TaskCore
import Testing

@testable import TransferEngine

/// The contents of the envelope of a download's checkpoint.
@Suite struct DownloadCheckpointTests {
  private static let identity = SourceIdentity(
    finalURL: "https://edge/a", size: 9000, etag: "\"x\"", etagIsWeak: true,
    lastModified: "Sat, 21 Nov 2026 14:17:26 GMT", date: "Sat, 21 Nov 2026 14:20:00 GMT", versionID: "v1")
  private static let full = DownloadCheckpoint(
    generation: 3, identity: identity, volume: UniqueID(high: 1, low: 2), stagingName: "a.part",
    done: ByteRanges([0..<4096, 8192..<9000]), tailCRC: .max)
  private static let bare = DownloadCheckpoint(
    generation: 0, identity: SourceIdentity(finalURL: "http://a/", size: nil), volume: UniqueID(high: 1, low: 2),
    stagingName: "a.part")

  @Test("a checkpoint read from its envelope is the one that was written", arguments: [full, bare])
  func roundTrip(checkpoint: DownloadCheckpoint) throws {
    #expect(try DownloadCheckpoint(checkpoint.envelope) == checkpoint)
  }

  @Test("the envelope has the recorded bytes, the total bytes and the generation")
  func envelope() {
    let envelope = Self.full.envelope
    #expect((envelope.bytesDone, envelope.bytesTotal) == (4904, 9000))
    #expect(envelope.generation == 3 && envelope.stage == nil)
  }

  @Test(
    "the checkpoint of a file that is being published has the stage that the store knows",
    arguments: [[], [UInt8](repeating: 3, count: 32)])
  func publishing(sha256: [UInt8]) throws {
    var checkpoint = Self.full
    checkpoint.publishing = DownloadCheckpoint.Publishing(sha256: sha256)
    #expect(checkpoint.envelope.stage == Checkpoint.publishing)
    #expect(try DownloadCheckpoint(checkpoint.envelope) == checkpoint)
  }

  @Test(
    "a payload of a later version, or one that is damaged, is refused",
    arguments: [
      Checkpoint(version: 2, payload: full.envelope.payload), Checkpoint(payload: Array("{}".utf8)),
      Checkpoint(payload: Array("null".utf8)), Checkpoint(payload: []),
      Checkpoint(payload: damaged("[0,4096,8192,9000]", "[0,4096,8192]")),
      Checkpoint(payload: damaged("[0,4096,8192,9000]", "[4096,0]")),
      Checkpoint(payload: damaged("4294967295", "4294967296")),
    ])
  func damage(envelope: Checkpoint) {
    #expect(throws: DecodingFailure.self) { try DownloadCheckpoint(envelope) }
  }

  private static func damaged(_ part: String, _ other: String) -> [UInt8] {
    let text = String(decoding: full.envelope.payload, as: UTF8.self)
    let parts = text.split(separator: part, maxSplits: 1)
    return Array((parts[0] + other + parts[1]).utf8)
  }
}
