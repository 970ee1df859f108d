import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Sources whose bodies end with their connection, and nothing says where.
@Suite struct DownloadUnframedTests {
  static let size: Int64 = 700_001
  static let file = OriginFile(seed: 71, size: size)
  static let film = MP4.file(media: 700_000, moovFirst: true)

  /// How the client reaches the origin. libcurl takes each of these ends for the end of the body.
  enum Way: CaseIterable {
    case plain, tls, tlsWithGoodbye
  }

  private func run(
    over way: Way = .plain, _ change: @escaping @Sendable (inout HarnessOptions) -> Void = { _ in },
    _ body: (DownloadHarness, TaskSpec) async throws -> Void
  ) async throws {
    try await DownloadHarness.run(trustsTestAuthority: true, change) { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let relay = way == .plain ? nil : try TLSRelay(to: harness.origin.port, saysGoodbye: way == .tlsWithGoodbye)
      defer { relay?.close() }
      let spec = harness.spec {
        $0.allowUnframed = true
        if let relay { $0.source = relay.url(DownloadHarness.path) }
      }
      try await body(harness, spec)
    }
  }

  @Test("two equal bodies are published, and the second is not stored", arguments: Way.allCases)
  func twoEqualBodiesAreTheFile(way: Way) async throws {
    try await run(over: way) { harness, spec in
      harness.origin.always(DownloadHarness.path, .unframed())
      #expect(await harness.run(spec) == .succeeded(sha256: Self.file.sha256, bytes: Self.size, .twoFetches))
      try #expect(harness.published == Self.file.bytes)
      #expect(harness.origin.exchanges(DownloadHarness.path).count == 2)
      #expect(try harness.stagedNames.isEmpty)
    }
  }

  @Test("empty bodies prove nothing")
  func emptyBodiesProveNothing() async throws {
    try await run { harness, spec in
      harness.origin.always(DownloadHarness.path, .unframed([]))
      let failure = await harness.run(spec).failure
      #expect(failure?.code == .badResponse && failure?.class == .retry)
      try #expect(harness.published == nil)
    }
  }

  @Test("two equal bodies are compared even if downloads are not hashed otherwise")
  func bodiesAreComparedWithoutHashing() async throws {
    try await run {
      $0.hashes = false
    } _: { harness, spec in
      harness.origin.always(DownloadHarness.path, .unframed())
      #expect(await harness.run(spec) == .succeeded(sha256: Self.file.sha256, bytes: Self.size, .twoFetches))
    }
  }

  @Test("a body that is cut at random is never published", arguments: Way.allCases)
  func cutBodiesAreNotPublished(way: Way) async throws {
    try await run(over: way) { harness, spec in
      harness.origin.script(DownloadHarness.path) { [.unframed(), .cut(after: Int64(1000 * $0.number * $0.number))] }
      let failure = await harness.run(spec).failure
      #expect(failure?.code == .fetchesDiffer)
      #expect(failure?.class == .retry)
      try #expect(harness.published == nil)
      // One body is cut, and then the server is well.
      harness.origin.script(DownloadHarness.path) { $0.number == 11 ? [.unframed(), .cut(after: 7)] : [.unframed()] }
      #expect(await harness.run(spec) == .succeeded(sha256: Self.file.sha256, bytes: Self.size, .twoFetches))
      try #expect(harness.published == Self.file.bytes)
    }
  }

  @Test("a source that changes with every answer is never published")
  func changingContentIsNotPublished() async throws {
    try await run { harness, spec in
      harness.origin.script(DownloadHarness.path) { request in
        [.unframed(OriginContent(seed: UInt64(request.number)).bytes(0..<Self.size))]
      }
      let failure = await harness.run(spec).failure
      #expect(failure?.code == .fetchesDiffer)
      #expect(failure?.class == .retry)
      try #expect(harness.published == nil)
      #expect(harness.origin.exchanges(DownloadHarness.path).count == 10)
    }
  }

  @Test("a film whose boxes add up is fetched once, and one that is cut needs a second body", arguments: Way.allCases)
  func aFilmProvesItself(way: Way) async throws {
    try await run(over: way) { harness, spec in
      harness.origin.serve(DownloadHarness.path, Self.file.withoutValidators())
      harness.origin.script(DownloadHarness.path) {
        $0.number == 1 ? [.unframed(Self.film), .cut(after: 600_000)] : [.unframed(Self.film)]
      }
      let done = DownloadOutcome.succeeded(
        sha256: digest(.sha256, of: Self.film), bytes: Int64(Self.film.count), .container)
      // The first is cut and not equal to the second. The third adds up.
      #expect(await harness.run(spec) == done)
      try #expect(harness.published == Self.film)
      #expect(harness.origin.exchanges(DownloadHarness.path).count == 3)
    }
  }

  @Test("an expected size or digest proves a body, with the option and without", arguments: [false, true])
  func anExpectationProvesABody(allowUnframed: Bool) async throws {
    try await run { harness, spec in
      var spec = spec
      spec.allowUnframed = allowUnframed
      spec.expect.bytes = Self.size
      harness.origin.serve(DownloadHarness.path, Self.file.withoutValidators())
      harness.origin.always(DownloadHarness.path, .unframed(), .cut(after: 1000))
      let failure = await harness.run(spec).failure
      #expect(failure?.code == .sizeMismatch && failure?.class == .fail, "it ends twice at the same byte")
      // One that was cut is fetched again.
      harness.origin.script(DownloadHarness.path) { $0.number == 3 ? [.unframed(), .cut(after: 1000)] : [.unframed()] }
      let proof = allowUnframed ? Verification.bytes : nil
      #expect(await harness.run(spec) == .succeeded(sha256: Self.file.sha256, bytes: Self.size, proof))
    }
  }

  @Test("coded bodies are refused as before, and bodies with an end need no proof")
  func otherBodiesAreTreatedAsBefore() async throws {
    try await run { harness, spec in
      harness.origin.always(DownloadHarness.path, .unframed(), .gzip)
      #expect(await harness.run(spec).failure?.code == .badResponse)
      harness.origin.always(DownloadHarness.path)
      #expect(await harness.run(spec) == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      let chunked = harness.spec("/chunked.mp4") {
        $0.allowUnframed = true
        $0.ifExists = .replace
      }
      harness.origin.serve("/chunked.mp4", Self.file.withoutValidators().with { $0.tellsLength = false })
      // No verification is told, so nothing was compared.
      #expect(await harness.run(chunked) == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
    }
  }

  /// Holds the second body at `gate`, stops the run there, and returns what is recorded.
  private func stopped(_ harness: DownloadHarness, _ spec: TaskSpec) async throws -> DownloadCheckpoint {
    let gate = OriginGate()
    harness.origin.script(DownloadHarness.path) { [.unframed()] + ($0.number == 2 ? [.hold(after: 1000, gate)] : []) }
    return try #require(try await harness.interrupted(spec, at: gate, written: 0))
  }

  @Test("a run that is stopped between two bodies continues with the second")
  func theFirstBodyIsKept() async throws {
    try await run { harness, spec in
      let checkpoint = try await stopped(harness, spec)
      #expect(checkpoint.isUnproven)
      #expect(checkpoint.done == ByteRanges(0..<Self.size))
      #expect(checkpoint.envelope.bytesDone == 0, "it counts as no progress")
      let read = try DownloadCheckpoint(checkpoint.envelope)
      #expect(read == checkpoint)
      harness.origin.always(DownloadHarness.path, .unframed())
      let outcome = await harness.run(spec, from: read)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size, .twoFetches))
      try #expect(harness.published == Self.file.bytes)
      #expect(harness.origin.exchanges(DownloadHarness.path).count == 3)
    }
  }

  @Test("space that a crashed run had reserved beyond the first body is not published")
  func reservedSpaceIsNotPublished() async throws {
    try await run { harness, spec in
      let checkpoint = try await stopped(harness, spec)
      let name = try #require(StagingName(checkpoint.stagingName))
      let staged = try harness.storage.adopt(
        for: StorageURL(DownloadHarness.destination), task: spec.id, checkpoint: checkpoint)
      #expect(staged.name.generation == name.generation)
      try staged.reserve(Self.size + 1_000_000)
      harness.origin.always(DownloadHarness.path, .unframed())
      #expect(await harness.run(spec, from: checkpoint).failure == nil)
      try #expect(harness.published == Self.file.bytes)
    }
  }

  @Test("a kept body that the source no longer has is replaced")
  func aKeptBodyIsReplaced() async throws {
    try await run { harness, spec in
      let checkpoint = try await stopped(harness, spec)
      let other = OriginFile(seed: 72, size: Self.size)
      harness.origin.serve(DownloadHarness.path, other)
      harness.origin.always(DownloadHarness.path, .unframed())
      let outcome = await harness.run(spec, from: checkpoint)
      #expect(outcome == .succeeded(sha256: other.sha256, bytes: other.size, .twoFetches))
      try #expect(harness.published == other.bytes)
      #expect(harness.origin.exchanges(DownloadHarness.path).count == 5)
    }
  }

  @Test("a crash while publishing does not forget what verified the file")
  func theVerificationIsRecorded() async throws {
    try await run { harness, spec in
      harness.origin.always(DownloadHarness.path, .unframed())
      let checkpoint = try await harness.diedPublishing(spec)
      let read = try DownloadCheckpoint(checkpoint.envelope)
      #expect(read == checkpoint)
      let outcome = await harness.run(spec, from: read)
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size, .twoFetches))
      #expect(harness.origin.exchanges(DownloadHarness.path).count == 2)
    }
  }
}
