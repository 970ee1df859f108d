import Glibc
import LocalFleet
import ReelhaulCurl
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Downloads over https, with the same guarantees and an authenticated server.
@Suite struct DownloadTLSTests {
  static let size: Int64 = 1_500_001
  static let file = OriginFile(seed: 51, size: size)

  /// A harness that trusts the tests' authority, and a relay that speaks TLS for its origin.
  private func run(
    as server: TestCertificates.Server = .valid, highestVersion: Int32? = nil,
    _ change: @escaping @Sendable (inout HarnessOptions) -> Void = { _ in },
    _ body: (DownloadHarness, TLSRelay) async throws -> Void
  ) async throws {
    try await DownloadHarness.run(trustsTestAuthority: true, change) { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let relay = try TLSRelay(to: harness.origin.port, as: server, highestVersion: highestVersion)
      defer { relay.close() }
      try await body(harness, relay)
    }
  }

  private func spec(_ harness: DownloadHarness, _ relay: TLSRelay) -> TaskSpec {
    harness.spec { $0.source = relay.url(DownloadHarness.path) }
  }

  private func arrives(_ outcome: DownloadOutcome, _ harness: DownloadHarness) throws {
    #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
    try #expect(harness.published == Self.file.bytes)
  }

  @Test("over TLS, ranges come over several connections")
  func rangesComeOverSeveralConnections() async throws {
    try await run { harness, relay in
      let gate = OriginGate()
      harness.origin.script(DownloadHarness.path) { request in
        if request.number == 2 { return [.hold(after: 1000, gate)] }
        if request.number == 3 { gate.open() }
        return []
      }
      try await arrives(harness.run(spec(harness, relay)), harness)
      #expect(harness.origin.exchanges(DownloadHarness.path).contains { $0.request.inProgress > 1 })
    }
  }

  /// Each file takes one request. If a second request used the same connection, the surplus bytes would be taken for
  /// its response.
  @Test("over TLS, bytes after a response are not taken for another file")
  func surplusBytesAreNotAnotherFile() async throws {
    let file = OriginFile(seed: 52, size: 100_001)
    try await run { harness, relay in
      harness.origin.serve(DownloadHarness.path, file)
      harness.origin.always(
        DownloadHarness.path, .surplus("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 4\r\n\r\nEVIL"))
      for number in 1...3 {
        let spec = harness.spec {
          $0.source = relay.url(DownloadHarness.path)
          $0.destination = "storage://default/film-\(number).mp4"
        }
        let outcome = await harness.run(spec)
        #expect(outcome == .succeeded(sha256: file.sha256, bytes: file.size))
        #expect(harness.origin.exchanges(DownloadHarness.path).count == number)
        try await eventually("the connection is given up") { harness.origin.connections == 0 }
      }
    }
  }

  @Test("over TLS, a stopped run is continued")
  func aStoppedRunIsGoneOnWith() async throws {
    try await run { harness, relay in
      let gate = OriginGate()
      harness.origin.script(DownloadHarness.path) { request in
        (request.range?.first ?? 0) >= 700_000 ? [.hold(after: 50_000, gate)] : []
      }
      let spec = spec(harness, relay)
      let checkpoint = try #require(try await harness.interrupted(spec, at: gate, written: 700_000))
      harness.origin.script(DownloadHarness.path) { _ in [] }
      let before = harness.origin.exchanges(DownloadHarness.path).count
      try await arrives(harness.run(spec, from: checkpoint), harness)
      var again = ByteRanges()
      for exchange in harness.origin.exchanges(DownloadHarness.path)[before...] where exchange.sent.count > 1 {
        again.formUnion(exchange.sent)
      }
      #expect(checkpoint.done.count >= 500_000)
      #expect(again.intersection(checkpoint.done).isEmpty)
    }
  }

  /// Without the closing message of TLS, the end of a connection proves nothing about the bytes before it.
  @Test("over TLS, a download continues after lost connections", arguments: [false, true])
  func cutAndResetConnectionsAreGoneOnWith(reset: Bool) async throws {
    try await run { harness, relay in
      // A reset may destroy bytes that are on their way. So only every second answer is cut.
      harness.origin.script(DownloadHarness.path) {
        $0.number.isMultiple(of: 2) ? [.cut(after: 100_000, reset: reset)] : []
      }
      try await arrives(harness.run(spec(harness, relay)), harness)
    }
  }

  @Test("over TLS, a body of unknown length is accepted only if an expected size or digest confirms it")
  func aCutBodyOfUnknownLengthIsNoFile() async throws {
    try await run { harness, relay in
      harness.origin.serve(DownloadHarness.path, Self.file.with { $0.tellsLength = false })
      harness.origin.always(DownloadHarness.path, .cut(after: 700_000))
      #expect(await harness.run(spec(harness, relay)).failure?.class == .retry)
      // The end of the connection ends the body. An attacker can cause this, and libcurl does not notice it.
      harness.origin.serve(DownloadHarness.path, Self.file.with { $0.acceptsRanges = false })
      harness.origin.always(DownloadHarness.path, .header("Content-Length", nil), .cut(after: 700_000))
      #expect(await harness.run(spec(harness, relay)).failure?.code == .lengthUnknown)
      var spec = spec(harness, relay)
      spec.expect.sha256 = Self.file.sha256
      #expect(await harness.run(spec).failure?.code == .digestMismatch)
      try #expect(harness.published == nil)
      harness.origin.always(DownloadHarness.path, .header("Content-Length", nil))
      try await arrives(harness.run(spec), harness)
    }
  }

  @Test(
    "a server with an untrusted, expired or wrong certificate is refused",
    arguments: [
      (TestCertificates.Server.unknown, TaskFailure.Code.certificateUntrusted), (.expired, .certificateExpired),
      (.misnamed, .certificateMisnamed),
    ])
  func aServerThatIsNotWhoItSaysIsRefused(server: TestCertificates.Server, code: TaskFailure.Code) async throws {
    try await run(as: server) { harness, relay in
      let failure = await harness.run(spec(harness, relay)).failure
      #expect(failure?.code == code)
      #expect(failure?.class == .fail)
      #expect(failure?.message.contains("clock") == (server == .expired), "\(failure?.message ?? "")")
      #expect(harness.origin.exchanges(DownloadHarness.path).isEmpty)
    }
  }

  @Test("a certificate must match the requested host name")
  func aCertificateIsForTheNameThatWasAsked() async throws {
    try await run { harness, relay in
      let name = TestNames.name(for: "127.0.0.1")
      let spec = harness.spec { $0.source = relay.url(DownloadHarness.path, host: name) }
      #expect(await harness.run(spec).failure?.code == .certificateMisnamed)
    }
  }

  @Test("the system's authorities do not trust the test certificates")
  func theSystemsAuthoritiesDoNotSignForTests() async throws {
    try await run {
      $0.caFile = nil
    } _: { harness, relay in
      #expect(await harness.run(spec(harness, relay)).failure?.code == .certificateUntrusted)
    }
  }

  @Test("a task waits if the worker's file of authorities is missing")
  func aMissingFileOfAuthoritiesIsNotTheTasksFault() async throws {
    try await run {
      $0.caFile = "/nonexistent/authority.pem"
    } _: { harness, relay in
      let failure = await harness.run(spec(harness, relay)).failure
      #expect(failure?.code == .caFileUnusable)
      #expect(failure?.class == .wait)
    }
  }

  @Test("TLS before 1.2 is refused")
  func oldVersionsOfTLSAreRefused() async throws {
    try await run(highestVersion: 0x0302) { harness, relay in
      let failure = await harness.run(spec(harness, relay)).failure
      #expect(failure?.code == .tlsFailed)
      #expect(harness.origin.exchanges(DownloadHarness.path).isEmpty)
    }
    try await run(highestVersion: 0x0303) { harness, relay in
      try await arrives(harness.run(spec(harness, relay)), harness)
    }
  }

  @Test("a server that speaks only HTTP/2 works")
  func aServerOfHTTP2AloneIsUnderstood() async throws {
    try await run { harness, _ in
      let directory = try TemporaryDirectory()
      try write(Self.file.bytes, to: "\(directory.path)/film.mp4")
      let nginx = try await NginxOrigin.start(serving: directory.path, files: directory.path, http2: true)
      let relay = try TLSRelay(to: UInt16(nginx.port), requiring: "h2")
      defer { relay.close() }
      try await arrives(harness.run(spec(harness, relay)), harness)
      await nginx.close()
    }
  }
}
