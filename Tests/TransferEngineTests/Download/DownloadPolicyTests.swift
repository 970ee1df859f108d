import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Addresses outside the policy are not reached, however they are written, resolved or redirected to.
@Suite struct DownloadPolicyTests {
  static let file = OriginFile(seed: 61, size: 300_000)

  @Test(
    "no spelling of a private address passes the policy",
    arguments: [
      "127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "0x7f.1", "127.1", "0", "0.0.0.0", "[::1]", "[::]",
      "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::1]",
      "localhost", "LocalHost", "a.localhost",
    ])
  func noSpellingGetsPast(host: String) async throws {
    try await DownloadHarness.run(policy: NetworkPolicy()) { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let spec = harness.spec { $0.source = harness.origin.url(DownloadHarness.path, host: host) }
      let failure = await harness.run(spec).failure
      #expect(failure?.code == .addressRefused, "\(String(describing: failure))")
      #expect(failure?.message.contains("REELHAUL_ALLOW_NETWORKS") == true)
      #expect(failure?.class == .fail)
      #expect(harness.origin.exchanges(DownloadHarness.path).isEmpty)
    }
  }

  @Test(
    "no redirect to a private address passes the policy",
    arguments: [
      ("http://169.254.169.254/latest", TaskFailure.Code.addressGivesCredentials),
      ("//169.254.169.254/latest", .addressGivesCredentials),
      ("http://2852039166/latest", .addressGivesCredentials), ("http://0xa9fea9fe/latest", .addressGivesCredentials),
      ("http://[::ffff:a9fe:a9fe]/latest", .addressGivesCredentials),
      ("http://[64:ff9b::a9fe:a9fe]/", .addressGivesCredentials),
      ("http://[2002:a9fe:a9fe::]/", .addressGivesCredentials),
      ("http://[fd00:ec2::254]/latest", .addressGivesCredentials),
      ("http://0.0.0.0/", .addressRefused), ("http://10.0.0.1:80/", .addressRefused),
      ("https://169.254.169.254/", .addressGivesCredentials),
      ("file:///etc/passwd", .redirectRefused), ("FILE:///etc/passwd", .redirectRefused),
      ("gopher://127.0.0.1/_x", .redirectRefused), ("ftp://127.0.0.1/film.mp4", .redirectRefused),
      ("dict://127.0.0.1/d", .redirectRefused), ("data:text/plain,x", .redirectRefused),
      ("http://127.0.0.1@169.254.169.254/", .redirectRefused), ("http://u:p@127.0.0.1/", .redirectRefused),
      ("http://", .redirectRefused),
    ])
  func noRedirectGetsPast(target: String, code: TaskFailure.Code) async throws {
    try await DownloadHarness.run { harness in
      harness.origin.always(DownloadHarness.path, .redirect(to: target))
      let failure = await harness.run(harness.spec()).failure
      #expect(failure?.code == code, "\(String(describing: failure))")
      #expect(failure?.class == .fail)
    }
  }

  @Test(
    "whoever is refused a metadata service or a link-local address is warned, and told no setting that allows it",
    arguments: [
      ("169.254.169.254", true), ("[::ffff:169.254.170.2]", true), ("[64:ff9b::a9fe:a9fe]", true),
      ("[fd00:ec2::254]", true), ("[fe80::1]", true), ("100.100.100.200", true), ("0xa9fea9fe", true),
      ("10.0.0.1", false), ("100.100.100.201", false), ("[fd00::1]", false),
    ])
  func aMetadataServiceIsWarnedOf(host: String, gives: Bool) async throws {
    try await DownloadHarness.run(policy: NetworkPolicy()) { harness in
      let failure = await harness.run(harness.spec { $0.source = "http://\(host)/latest" }).failure
      #expect(failure?.code == (gives ? .addressGivesCredentials : .addressRefused), "\(String(describing: failure))")
      #expect(failure?.message.contains("REELHAUL_ALLOW_NETWORKS") == !gives)
    }
  }

  @Test("a host name is judged by the address that it has now")
  func aNameIsJudgedByTheAddressItHasNow() async throws {
    let name = TestNames.name { $0 == 0 ? ["127.0.0.1"] : ["169.254.169.254"] }
    let source = Lock("")
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      source.withLock { $0 = harness.origin.url(DownloadHarness.path, host: name) }
      let spec = harness.spec { $0.source = source.withLock { $0 } }
      #expect(await harness.run(spec) == .succeeded(sha256: Self.file.sha256, bytes: Self.file.size))
      // Another worker, or the same worker a minute later, resolves the name differently.
      try await DownloadHarness.run { later in
        let failure = await later.run(later.spec { $0.source = spec.source }).failure
        #expect(failure?.code == .addressGivesCredentials)
      }
    }
    #expect(TestNames.lookups(of: name) == 2)
  }

  @Test("a redirect to a host name is judged by its address")
  func aRedirectToANameIsJudgedByItsAddress() async throws {
    for (address, end) in [("169.254.169.254", ""), ("10.1.2.3", ""), ("169.254.169.254", ".")] {
      try await DownloadHarness.run { harness in
        let name = TestNames.name(for: address)
        harness.origin.always(DownloadHarness.path, .redirect(to: "http://\(name)\(end)/film.mp4"))
        let code = await harness.run(harness.spec()).failure?.code
        #expect(code == (address == "10.1.2.3" ? .addressRefused : .addressGivesCredentials))
        #expect(TestNames.lookups(of: name) == 1)
      }
    }
  }

  @Test("a permitted address that is down is tried again, although another one of the host is refused")
  func aPermittedAddressIsDown() async throws {
    try await DownloadHarness.run { harness in
      let name = TestNames.name(for: "10.1.2.3", "127.0.0.1")
      let failure = await harness.run(harness.spec { $0.source = "http://\(name):1/film.mp4" }).failure
      #expect(failure?.class == .retry, "\(String(describing: failure))")
    }
  }

  @Test("a permitted address is used if a host has several")
  func ofSeveralAddressesAPermittedOneIsTaken() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let name = TestNames.name(for: "169.254.169.254", "127.0.0.1")
      let spec = harness.spec { $0.source = harness.origin.url(DownloadHarness.path, host: name) }
      #expect(await harness.run(spec) == .succeeded(sha256: Self.file.sha256, bytes: Self.file.size))
    }
  }

  @Test("failure messages and checkpoints hide secrets in URLs")
  func messagesAndCheckpointsHideSecrets() async throws {
    let faults: [[OriginFault]] = [
      [.answer(404)], [.answer(503, headers: [("Retry-After", "9")])], [.gzip],
      [.cut(after: nil)], [.headerFlood(2000)], [.redirect(to: "http://10.0.0.1/x?signature=secret")],
      [.redirect(to: "file:///secret")], [.redirect(to: "http://secret:secret@127.0.0.1/")],
      [.redirect(to: "http://127.0.0.1:9/?signature=secret")],
    ]
    for fault in faults {
      try await DownloadHarness.run {
        $0.limits.retries = 0
      } _: { harness in
        harness.origin.serve(DownloadHarness.path, Self.file)
        harness.origin.script(DownloadHarness.path) { _ in fault }
        let failure = await harness.run(harness.spec { $0.source += "?signature=secret" }).failure
        #expect(failure?.message.contains("secret") == false, "\(fault): \(String(describing: failure))")
      }
    }
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let ledger = RecordingLedger()
      _ = await harness.run(harness.spec { $0.source += "?signature=secret" }, ledger: ledger)
      #expect(ledger.checkpoints.allSatisfy { !$0.identity.finalURL.contains("secret") })
      #expect(ledger.last?.identity.finalURL.hasSuffix("/film.mp4?signature=***") == true)
    }
  }
}
