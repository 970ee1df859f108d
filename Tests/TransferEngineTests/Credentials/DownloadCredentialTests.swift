import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// A named credential is sent only to its own hosts.
@Suite struct DownloadCredentialTests {
  static let file = OriginFile(seed: 71, size: 600_000)

  /// The parts of a credential test: an origin behind TLS, and the worker's file with one bearer token for it.
  private struct Stage {
    let harness: DownloadHarness
    let relay: TLSRelay
    let path: String

    /// Replaces the credential file.
    func write(_ token: String, host: String? = nil, mode: mode_t = 0o600) throws {
      let host = host ?? "127.0.0.1:\(relay.port)"
      let text = #"{"studio": {"hosts": ["\#(host)"], "bearer": "\#(token)"}}"#
      unlink(path)
      try TransferEngineTests.write(Array(text.utf8), to: path, mode: mode)
    }

    func spec(_ change: (inout TaskSpec) -> Void = { _ in }) -> TaskSpec {
      harness.spec {
        $0.source = relay.url(DownloadHarness.path)
        $0.credential = "studio"
        change(&$0)
      }
    }

    var requests: [OriginRequest] { harness.origin.exchanges(DownloadHarness.path).map(\.request) }
  }

  private func run(_ body: (Stage) async throws -> Void) async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/credentials.json"
    let authority = try TestCertificates.shared.get().authority
    try await DownloadHarness.run(credentials: CredentialFile(path: path)) {
      $0.caFile = authority
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let relay = try TLSRelay(to: harness.origin.port)
      defer { relay.close() }
      let stage = Stage(harness: harness, relay: relay, path: path)
      try stage.write("first")
      try await body(stage)
    }
  }

  static let arrives = DownloadOutcome.succeeded(sha256: file.sha256, bytes: file.size)

  @Test("a credential is sent with every request to its host, and replaces the task's header")
  func itIsSentToItsHost() async throws {
    try await run { stage in
      let spec = stage.spec { $0.headers = [HeaderField(name: "authorization", value: "mine")] }
      #expect(await stage.harness.run(spec) == Self.arrives)
      #expect(stage.requests.count > 1)
      #expect(
        stage.requests.allSatisfy { $0.headers.filter { $0.name == "authorization" }.map(\.value) == ["Bearer first"] })
    }
  }

  @Test("a download that is stopped does not wait for its credential's program")
  func aStopIsNotHeldUp() async throws {
    try await run { stage in
      let mark = "\(stage.path).pid"
      let text = #"{"studio": {"command": ["/bin/sh", "-c", "echo $$ >\#(mark); exec sleep 1000"]}}"#
      unlink(stage.path)
      try TransferEngineTests.write(Array(text.utf8), to: stage.path, mode: 0o600)
      let download = Task { await stage.harness.run(stage.spec()) }
      try await eventually("the program runs") { (try? TextFile.read(mark))?.hasSuffix("\n") == true }
      download.cancel()
      #expect(await download.value == .stopped)
      #expect(stage.requests.isEmpty)
      let program = try #require(pid_t(try TextFile.read(mark).dropLast()))
      #expect(kill(program, SIGKILL) == 0, "it is not ended for one of those that wait")
    }
  }

  @Test("a credential is not sent to another host after a redirect")
  func aRedirectDoesNotTakeItAlong() async throws {
    try await run { stage in
      let elsewhere = try OriginServer()
      defer { elsewhere.close() }
      elsewhere.serve("/film", Self.file)
      let relay = try TLSRelay(to: elsewhere.port)
      defer { relay.close() }
      // Another port, another scheme, another name.
      for target in [relay.url("/film"), elsewhere.url("/film"), relay.url("/film", host: "localhost")] {
        stage.harness.origin.always(DownloadHarness.path, .redirect(to: target))
        let spec = stage.spec {
          $0.ifExists = .replace
          $0.expect.sha256 = Self.file.sha256
        }
        #expect(await stage.harness.run(spec) == Self.arrives)
      }
      #expect(stage.requests.allSatisfy { $0["authorization"] == "Bearer first" })
      #expect(!elsewhere.exchanges("/film").isEmpty)
      #expect(elsewhere.exchanges("/film").allSatisfy { $0.request["authorization"] == nil })
    }
  }

  @Test("a credential is refused for a source on another host, port or scheme")
  func anotherHostDoesNotGetIt() async throws {
    try await run { stage in
      let sources = [
        stage.harness.origin.url(DownloadHarness.path), stage.relay.url(DownloadHarness.path, host: "localhost"),
        "https://127.0.0.1/film.mp4",
      ]
      for source in sources {
        let failure = await stage.harness.run(stage.spec { $0.source = source }).failure
        #expect(failure?.code == .credentialRefused)
        #expect(failure?.class == .fail)
      }
      #expect(stage.requests.isEmpty)
    }
  }

  @Test("a task waits if the worker lacks its credential or cannot use the file")
  func aWorkerWithoutItLetsTheTaskWait() async throws {
    try await run { stage in
      let unknown = await stage.harness.run(stage.spec { $0.credential = "other" }).failure
      #expect(unknown?.code == .credentialUnknown)
      #expect(unknown?.class == .wait)
      #expect(unknown?.message.contains("\"other\"") == true)
      try stage.write("first", mode: 0o644)
      let open = await stage.harness.run(stage.spec()).failure
      #expect(open?.code == .credentialsUnusable)
      #expect(open?.class == .wait)
      #expect(stage.requests.isEmpty)
    }
    try await DownloadHarness.run { harness in
      let failure = await harness.run(harness.spec { $0.credential = "studio" }).failure
      #expect(failure?.code == .credentialUnknown)
      #expect(harness.origin.exchanges(DownloadHarness.path).isEmpty)
    }
  }

  @Test("a refused request fails the task if the credential has not changed", arguments: [401, 403])
  func aRefusalIsFinalUnlessTheCredentialIsNew(status: Int) async throws {
    try await run { stage in
      stage.harness.origin.always(DownloadHarness.path, .answer(status))
      let failure = await stage.harness.run(stage.spec()).failure
      #expect(failure?.code == .http(status))
      #expect(failure?.class == .fail)
      #expect(failure?.message.contains("first") == false)
      #expect(stage.requests.count == 1)
      let without = await stage.harness.run(stage.spec { $0.credential = nil }).failure
      #expect(without?.code == .http(status))
      #expect(without?.class == .fail)
      #expect(stage.requests.count == 2)
    }
  }

  @Test("a replaced credential is read after a refusal")
  func anExchangedCredentialIsRead() async throws {
    try await run { stage in
      stage.harness.origin.script(DownloadHarness.path) { request in
        guard request["authorization"] != "Bearer second" else { return [] }
        try? stage.write("second")
        return [.answer(401)]
      }
      #expect(await stage.harness.run(stage.spec()) == Self.arrives)
      #expect(stage.requests.filter { $0["authorization"] == "Bearer first" }.count == 1)
    }
  }

  @Test("a credential that expires during a download is read again, each time")
  func aCredentialThatExpiresIsReadAgain() async throws {
    try await run { stage in
      let tokens = ["first", "second", "third"]
      let served = Lock([0, 0, 0])
      stage.harness.origin.script(DownloadHarness.path) { request in
        guard let index = tokens.firstIndex(where: { request["authorization"] == "Bearer \($0)" }) else {
          return [.answer(401)]
        }
        let count = served.withLock { served in
          served[index] += 1
          return served[index]
        }
        guard index < 2, count > 1 else { return [] }
        try? stage.write(tokens[index + 1])
        return [.answer(401)]
      }
      #expect(await stage.harness.run(stage.spec()) == Self.arrives)
      try #expect(stage.harness.published == Self.file.bytes)
      #expect(served.withLock { $0[2] } > 0)
    }
  }

  @Test("a task waits if its credential cannot be read again after a refusal")
  func aCredentialThatCannotBeReadAgain() async throws {
    try await run { stage in
      stage.harness.origin.script(DownloadHarness.path) { request in
        guard request.number >= 3 else { return [] }
        unlink(stage.path)
        return [.answer(401)]
      }
      let failure = await stage.harness.run(stage.spec()).failure
      #expect(failure?.code == .credentialsUnusable && failure?.class == .wait)
    }
  }

  @Test("one refused request in the middle of a download is repeated")
  func aServerThatHasHadEnoughIsAskedAgain() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      harness.origin.script(DownloadHarness.path) { $0.number == 3 ? [.answer(403)] : [] }
      #expect(await harness.run(harness.spec()) == Self.arrives)
    }
  }
}
