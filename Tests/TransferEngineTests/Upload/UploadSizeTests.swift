import ReelhaulMessages
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Files of any size that a server can name.
@Suite struct UploadSizeTests {
  /// A source without bytes.
  private struct Source: UploadSource {
    let size: Int64

    var identity: UploadIdentity { UploadIdentity(size: size, version: "1") }

    func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8> { throw UploadSourceChanged() }
    func check() async throws {}
  }

  @Test(
    "a source of an absurd size fails its copy and nothing else",
    arguments: [("s3", Int64.max), ("s3", 1 << 60), ("tus", .max), ("put", .max)])
  func absurd(protocol name: String, size: Int64) async throws {
    let origin = try OriginServer()
    defer { origin.close() }
    origin.serve("/film.mp4", OriginFile(seed: 1, size: 300_000))
    origin.always("/film.mp4", .header("Content-Range", "bytes 0-65535/\(size)"))
    try await UploadHarness.run { harness in
      let (destination, parameters, code): (String, String?, TaskFailure.Code) =
        switch name {
        case "s3": ("s3://films/film.mp4", #"{"toCredential":"s3"}"#, .fileTooLarge)
        case "tus": ("tus+\(harness.store.url("/tus"))", nil, .sourceChanging)
        default: (harness.store.url("/put/film.mp4"), nil, .badResponse)
        }
      let outcome = await harness.run(
        TaskSpec(
          id: .random(), kind: .copy, source: origin.url("/film.mp4"), destination: destination,
          parameters: parameters.map { Array($0.utf8) }))
      #expect(outcome.failure?.code == code, "\(outcome)")
      #expect(harness.store.objects.isEmpty)
    }
  }

  @Test("no upload to S3 has more parts than a store takes, and none is too short or too long")
  func partsOfLargeFiles() async throws {
    try await UploadHarness.run { harness in
      let root = try #require(harness.roots["default"])
      for size in [100 << 20, 78 << 30, 80 << 30, 100 << 30, 5 << 40] as [Int64] {
        let target = S3Target(
          client: S3Client(bucket: "films", root: root, credential: "s3", ledger: UploadRecordingLedger()),
          key: "film.mp4", parameters: UploadParameters())
        let plan = try await target.plan(size: size)
        #expect(plan.segments(of: size) <= 10_000 && (5 << 20...5 << 30).contains(plan.segmentSize), "\(size): \(plan)")
      }
    }
  }

  @Test("segments cover the largest file") func segments() {
    let plan = UploadPlan(segmentSize: 1 << 61, parallel: 4, keepsParts: true)
    #expect(plan.segments(of: .max) == 4)
    #expect(plan.range(of: 3, size: .max) == 3 << 61..<Int64.max)
    let source = Source(size: .max)
    #expect(BlockSums("", block: 1, size: .max) == nil && BlockSums("", block: 2, size: .max) == nil)
    #expect(source.block(at: .max - 1, of: 0..<Int64.max) == Int64.max - 1..<Int64.max)
  }

  @Test("requests end where the blocks do of which there are checksums")
  func pieces() {
    let (plain, checked) = (Source(size: 50), CheckedSource(source: Source(size: 50), sums: BlockSums(block: 7)))
    func pieces(of source: any UploadSource, from start: Int64, most: Int64) -> [Range<Int64>] {
      var pieces: [Range<Int64>] = []
      var offset = start
      while offset < 50 {
        pieces.append(source.piece(at: offset, of: 0..<50, most: most))
        offset = pieces.last?.upperBound ?? 50
      }
      return pieces
    }
    #expect(pieces(of: plain, from: 3, most: 20) == [3..<23, 23..<43, 43..<50])
    #expect(pieces(of: checked, from: 3, most: 20) == [3..<21, 21..<35, 35..<50])
    #expect(pieces(of: checked, from: 3, most: 30) == [3..<28, 28..<50])
    #expect(pieces(of: checked, from: 21, most: 5).prefix(4) == [21..<26, 26..<28, 28..<33, 33..<35])
    #expect(checked.whole(3..<23) == 0..<28 && checked.whole(45..<46) == 42..<49 && checked.whole(49..<50) == 49..<50)
    #expect(plain.piece(at: 0, of: 0..<0, most: 5) == 0..<0 && checked.piece(at: 0, of: 0..<0, most: 5) == 0..<0)
  }
}
