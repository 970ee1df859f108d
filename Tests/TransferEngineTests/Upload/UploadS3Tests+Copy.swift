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
