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
}
