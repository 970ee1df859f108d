import Glibc
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Servers that misbehave. In every case the file at the destination is correct, or there is no file and an honest
/// error.
@Suite struct DownloadFaultTests {
  static let size: Int64 = 1_000_003
  static let file = OriginFile(seed: 21, size: size)
  static let other = OriginFile(seed: 22, size: size)

  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    /// The expected failure; `nil` if the file arrives.
    var code: TaskFailure.Code?
    var verified: Verification?
    var file = DownloadFaultTests.file
    /// The file at the destination, if it is not `file`.
    var result: OriginFile?
    var script: @Sendable (OriginRequest) -> [OriginFault]
    var testDescription: String { name }
  }

  /// The fault in all answers from request number `first` to `last`.
  private static func fault(
    _ name: String, fails code: TaskFailure.Code? = nil, from first: Int = 1, to last: Int = .max,
    _ faults: OriginFault...
  ) -> Case {
    Case(name: name, code: code) { $0.number >= first && $0.number <= last ? faults : [] }
  }

  static let cases: [Case] = [
    fault("200 for a range, always", .ignoresRange),
    fault("200 for a range, from the second on", from: 2, .ignoresRange),
    fault("200 for a range, once", from: 2, to: 2, .ignoresRange),
    fault("wrong start, always", .shiftsRange(start: 7, end: 0)),
    fault("wrong start, once", from: 3, to: 3, .shiftsRange(start: 7, end: 0)),
    fault("wrong end, always", .shiftsRange(start: 0, end: -7)),
    fault("wrong end, once", from: 2, to: 2, .shiftsRange(start: 0, end: -7)),
    fault("at most 100,000 bytes in an answer", .limitsRange(to: 100_000)),
    fault("at most 65,536 bytes in an answer but the first", from: 2, .limitsRange(to: 65_536)),
    fault("at most 1,000 bytes in an answer", .limitsRange(to: 1000)),
    fault("wrong total, once", from: 3, to: 3, .wrongTotal(by: 5)),
    fault("no Content-Range", .header("Content-Range", nil)),
    fault("no Content-Range, once", from: 2, to: 2, .header("Content-Range", nil)),
    fault("*/*", .header("Content-Range", "bytes */*")),
    fault("*/N", .header("Content-Range", "bytes */\(size)")),
    fault("short 206", fails: .badResponse, .shortBody(by: 100)),
    fault("short 206, once", from: 2, to: 2, .shortBody(by: 100)),
    fault("long 206", fails: .badResponse, .longBody(by: 100)),
    fault("long 206, once", from: 2, to: 2, .longBody(by: 100)),
    fault("long chunked 206, once", from: 2, to: 2, .longBody(by: 100), .chunked),
    fault("short chunked 206, once", from: 2, to: 2, .shortBody(by: 100), .chunked),
    fault("chunked 206", .chunked),
    Case(name: "a repeated length", file: file.with { $0.acceptsRanges = false }) { _ in
      [.header("Content-Length", "\(size), \(size)")]
    },
    fault("folded line", fails: .badResponse, .header("X", "y\r\n\tTransfer-Encoding: chunked")),
    fault("folded line, once", from: 2, to: 2, .header("X", "y\r\n\tTransfer-Encoding: chunked")),
    fault("Transfer-Encoding: identity", fails: .badResponse, .header("Transfer-Encoding", "identity")),
    fault("Transfer-Encoding: identity, once", from: 2, to: 2, .header("Transfer-Encoding", "identity")),
    fault("gzip 206", fails: .badResponse, .gzip),
    Case(name: "gzip 206 and a plain 200") { $0.range == nil ? [] : [.gzip] },
    Case(name: "400 for every range") { $0.range == nil ? [] : [.answer(400)] },
    Case(name: "413 for every range") { $0.range == nil ? [] : [.answer(413)] },
    Case(name: "wrong start of all but the first range") {
      $0.range?.first == 0 ? [] : [.shiftsRange(start: 1, end: 1)]
    },
    Case(name: "always the first bytes") { request in
      let first = request.range?.first ?? 0
      return first == 0 ? [] : [.shiftsRange(start: -first, end: -first)]
    },
    fault("400", fails: .http(400), .answer(400)),
    fault("gzip 206, once", from: 2, to: 2, .gzip),
    fault("multipart 206", .multipart),
    fault("multipart 206, once", from: 2, to: 2, .multipart),
    fault("416 with a body, once", from: 2, to: 2, .answer(416, body: "no")),
    fault("416 with a body, always", fails: .http(416), .answer(416, body: "no")),
    fault("412, once", from: 2, to: 2, .answer(412)),
    fault("101, once", from: 2, to: 2, .answer(101)),
    fault("101, and another protocol, once", from: 2, to: 2, .answer(101, body: "RFB 003.008\n")),
    fault("101", fails: .badResponse, .answer(101)),
    fault("204", fails: .badResponse, .answer(204)),
    fault("304", fails: .badResponse, .answer(304)),
    Case(name: "entity tag of its own for every answer", verified: .twoFetches) { _ in [.freshTag] },
    Case(name: "the same without ranges", verified: .twoFetches, file: file.with { $0.acceptsRanges = false }) { _ in
      [.freshTag]
    },
    Case(name: "every answer was modified just now", verified: .twoFetches, file: file.with { $0.etag = nil }) {
      let now = "Fri, 03 Jan 2025 00:00:\(10 + $0.number) GMT"
      return [.header("Date", now), .header("Last-Modified", now)]
    },
    Case(name: "swap within a whole body", file: file.with { $0.acceptsRanges = false }, result: other) {
      $0.number == 1 ? [.swap(after: 500_000, to: other.with { $0.acceptsRanges = false })] : []
    },
    Case(name: "no validators", file: file.withoutValidators()) { _ in [] },
    Case(name: "weak tag only", file: file.withWeakTagOnly()) { _ in [] },
    Case(name: "date alone", file: file.with { $0.etag = nil }) { _ in
      [.header("Date", "Fri, 03 Jan 2025 00:00:00 GMT")]
    },
    Case(name: "If-Range with a date alone", file: file.with { $0.ifRange = .dateOnly }) { _ in [] },
    Case(name: "If-Range ignored", file: file.with { $0.ifRange = .ignored }) { _ in [] },
    Case(name: "chunked, then cut", code: .connectionCut, file: file.with { $0.tellsLength = false }) { _ in
      [.cut(after: 500_000)]
    },
    Case(name: "chunked, then cut, once", file: file.with { $0.tellsLength = false }) {
      $0.number == 1 ? [.cut(after: 500_000)] : []
    },
    fault("cut in every chunk", .cut(after: 100_000)),
    fault("reset in every chunk", .cut(after: 100_000, reset: true)),
    fault("no response, twice", from: 1, to: 2, .cut(after: nil)),
    fault("no response, ever", fails: .noResponse, .cut(after: nil)),
    fault("flood of headers", fails: .headTooLarge, .headerFlood(2000)),
    fault("503, once", from: 2, to: 2, .answer(503)),
    fault("503, always", fails: .http(503), .answer(503, headers: [("Retry-After", "0")])),
    fault("500 for all but the first", fails: .http(500), from: 2, .answer(500)),
    fault("404", fails: .http(404), .answer(404)),
    fault(
      "HTML as 200", fails: .badResponse, .answer(200, headers: [("Content-Type", "text/html")], body: "<p>log in")),
    fault("HTML as 200, once", from: 3, to: 3, .answer(200, headers: [("Content-Type", "text/html")], body: "<p>")),
    fault("redirect to file:", fails: .redirectRefused, .redirect(to: "file:///etc/passwd")),
    fault("redirect without end", fails: .redirectRefused, .redirect(to: "/" + String(repeating: "x", count: 9000))),
    fault("redirect with credentials", fails: .redirectRefused, .redirect(to: "http://u:p@127.0.0.1/x")),
    fault("redirect to metadata", fails: .addressGivesCredentials, .redirect(to: "http://169.254.169.254/latest")),
    fault(
      "redirect to mapped metadata", fails: .addressGivesCredentials,
      .redirect(to: "http://[::ffff:169.254.169.254]/latest")),
    fault("redirect loop", fails: .redirectLoop, .redirect(to: "/film.mp4")),
    Case(name: "same-size swap within a chunk", result: other) {
      $0.number == 2 ? [.swap(after: 5000, to: other)] : []
    },
    Case(name: "same-size swap within the last chunk", result: other) {
      $0.range?.last == size - 1 ? [.swap(after: 5000, to: other)] : []
    },
    Case(name: "truncated on the way", result: OriginFile(seed: 23, size: 400_000)) {
      $0.number == 2 ? [.swap(after: 5000, to: OriginFile(seed: 23, size: 400_000))] : []
    },
    Case(name: "grown on the way", result: OriginFile(seed: 24, size: 1_400_000)) {
      $0.number == 2 ? [.swap(after: 5000, to: OriginFile(seed: 24, size: 1_400_000))] : []
    },
    Case(name: "one connection for each client") { $0.inProgress > 1 ? [.answer(503)] : [] },
    Case(name: "no second connection") { $0.inProgress > 1 ? [.cut(after: nil, reset: true)] : [] },
  ]

  @Test("under every fault of a server the file is correct or the task fails with the right code", arguments: cases)
  func theFileIsRightOrTheErrorHonest(_ test: Case) async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, test.file)
      harness.origin.script(DownloadHarness.path, test.script)
      let outcome = await harness.run(harness.spec())
      guard let code = test.code else {
        let file = test.result ?? test.file
        #expect(outcome == .succeeded(sha256: file.sha256, bytes: file.size, test.verified))
        try #expect(harness.published == file.bytes)
        return
      }
      #expect(outcome.failure?.code == code, "\(outcome)")
      try #expect(harness.published == nil)
    }
  }

  @Test("a wrong total length never publishes a file")
  func aWrongTotalIsNeverBelieved() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      harness.origin.always(DownloadHarness.path, .wrongTotal(by: 5))
      #expect(await harness.run(harness.spec()).failure != nil)
      try #expect(harness.published == nil)
    }
  }

  @Test("a transfer that drips is given up, also one whose rate is limited", arguments: [true, false])
  func aDripIsGivenUp(isLimited: Bool) async throws {
    try await DownloadHarness.run { options in
      if isLimited { options.rate = 64 << 20 }
      options.lowSpeed = .init(bytesPerSecond: 512, seconds: 1)
      options.limits.retries = 0
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      harness.origin.always(DownloadHarness.path, .pace(bytesPerSecond: 1))
      let failure = await harness.run(harness.spec { if isLimited { $0.rate = 32 << 20 } }).failure
      #expect(failure?.code == .timedOut)
      #expect(failure?.class == .retry)
    }
  }

  @Test("a request that stalls near the end is repeated")
  func aStallNearTheEndIsAskedForAgain() async throws {
    try await DownloadHarness.run {
      $0.lowSpeed = .init(bytesPerSecond: 512, seconds: 1)
    } _: { harness in
      harness.origin.serve(DownloadHarness.path, Self.file)
      let gate = OriginGate()
      let stalls = Lock(0)
      harness.origin.script(DownloadHarness.path) { request in
        guard request.range?.last == Self.size - 1 else { return [] }
        let stall = stalls.withLock { count in
          count += 1
          return count
        }
        return stall <= 2 ? [.hold(after: 1000, gate)] : []
      }
      let outcome = await harness.run(harness.spec())
      #expect(outcome == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
    }
  }

  /// The source redirects first to one signed URL, and then to another one.
  static func sign(_ origin: OriginServer) {
    for path in ["/signed/1", "/signed/2"] { origin.serve(path, file) }
    let redirects = Lock(0)
    origin.script(DownloadHarness.path) { _ in
      let count = redirects.withLock { count in
        count += 1
        return count
      }
      return [.redirect(to: "/signed/\(min(count, 2))?signature=secret")]
    }
  }

  @Test("an expired signed URL is fetched again through the source's redirect")
  func aSignedURLThatExpiresIsFetchedAnew() async throws {
    try await DownloadHarness.run { harness in
      let origin = harness.origin
      Self.sign(origin)
      origin.script("/signed/1") { $0.number > 2 ? [.answer(403)] : [] }
      #expect(await harness.run(harness.spec()) == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      try #expect(harness.published == Self.file.bytes)
      #expect(!origin.exchanges("/signed/2").isEmpty)
    }
  }

  @Test("headers of a task are not sent to another host after a redirect")
  func headersStayWithTheirHost() async throws {
    try await DownloadHarness.run { harness in
      let elsewhere = try OriginServer()
      defer { elsewhere.close() }
      elsewhere.serve("/elsewhere", Self.file)
      harness.origin.always(DownloadHarness.path, .redirect(to: elsewhere.url("/elsewhere")))
      let spec = harness.spec { $0.headers = [HeaderField(name: "X-Key", value: "secret")] }
      #expect(await harness.run(spec) == .succeeded(sha256: Self.file.sha256, bytes: Self.size))
      #expect(harness.origin.exchanges(DownloadHarness.path).allSatisfy { $0.request["x-key"] == "secret" })
      #expect(elsewhere.exchanges("/elsewhere").allSatisfy { $0.request["x-key"] == nil })
    }
  }

  @Test("failure messages hide the queries of URLs")
  func messagesHideQueries() async throws {
    try await DownloadHarness.run { harness in
      harness.origin.always(DownloadHarness.path, .answer(404))
      let spec = harness.spec { $0.source += "?signature=secret" }
      let failure = await harness.run(spec).failure
      #expect(failure?.code == .http(404))
      #expect(failure?.message.contains("secret") == false)
      #expect(failure?.message.contains("/film.mp4") == true)
    }
  }

  @Test("a source outside the network policy is refused")
  func aSourceOutsideThePolicyIsRefused() async throws {
    try await DownloadHarness.run { harness in
      let failure = await harness.run(harness.spec { $0.source = "http://169.254.169.254/latest/film.mp4" }).failure
      #expect(failure?.code == .addressGivesCredentials)
      #expect(failure?.class == .fail)
    }
  }

  @Test(
    "Retry-After counts from 0 seconds up to an hour",
    arguments: [("-5", 0), ("7", 7), ("99999999999999999999", 3600), ("Fri, 01 Jan 2100 00:00:00 GMT", 3600)])
  func retryAfterIsClamped(value: String, seconds: Int) async throws {
    try await DownloadHarness.run {
      $0.limits.retries = 0
    } _: { harness in
      harness.origin.always(DownloadHarness.path, .answer(503, headers: [("Retry-After", value)]))
      let failure = await harness.run(harness.spec()).failure
      #expect(failure?.code == .http(503))
      #expect(failure?.retryAfter == seconds)
      #expect(failure?.class == .retry)
    }
  }
}
