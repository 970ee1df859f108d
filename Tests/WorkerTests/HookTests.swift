import Glibc
import HTTPServer
import MemoryTaskStore
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine

@testable import WorkerCore

/// Events of tasks are posted to their web hooks.
@Suite struct HookTests {
  private static func task(_ url: String, queue: String = "default") -> TaskSpec {
    var spec = TaskSpec(id: .random(), kind: .noop, source: "noop://a/")
    spec.queue = queue
    spec.notify = url.isEmpty ? nil : url
    return spec
  }

  private static func sender(secret: String? = "a secret", allowed: [String] = ["127.0.0.0/8"]) throws -> HookSender {
    let policy = NetworkPolicy(allowed: try allowed.map { try CIDR($0) })
    return HookSender(permits: { policy.permits(sockaddr: $0) }, secret: secret)
  }

  @Test("each event of a task is posted in order, as a signed CloudEvent; tasks without a hook are not told")
  func delivers() async throws {
    let receiver = try await HookReceiver()
    let sender = try Self.sender()
    let bench = try WorkerBench(hooks: sender)
    let url = "http://127.0.0.1:\(receiver.port)/hook?key=1"
    try await bench.store.setQueueHook("films", to: url)
    let (own, ofQueue, none) = (Self.task(url), Self.task("", queue: "films"), Self.task(""))
    try await bench.run {
      bench.submit([own, ofQueue, none])
      try await eventually("all is posted") { receiver.posts.count { $0.type == "reelhaul.task.succeeded" } == 2 }
      let left = try await bench.store.undeliveredHooks(of: own.id)
      #expect(left.allSatisfy { $0.event.kind == .succeeded })
    }
    let posts = receiver.posts
    for id in [own.id, ofQueue.id] {
      let its = posts.filter { String(decoding: $0.body, as: UTF8.self).contains(#""subject":"\#(id)""#) }
      #expect(its.map(\.type) == ["submitted", "started", "succeeded"].map { "reelhaul.task.\($0)" })
      #expect(its.map(\.sequence) == [1, 2, 3])
      for post in its {
        #expect(HookReceiver.isSigned(post, by: Array("a secret".utf8)) && post.path == "/hook")
        #expect(post.headers["content-type"] == "application/cloudevents+json; charset=utf-8")
        let text = String(decoding: post.body, as: UTF8.self)
        #expect(text.hasPrefix(#"{"specversion":"1.0","id":"\#(post.id)""#), "\(text)")
      }
    }
    #expect(posts.count == 6)
    await sender.close()
    await receiver.stop()
  }

  @Test("events whose hooks could not be added are not lost") func addsAgain() async throws {
    let receiver = try await HookReceiver()
    let sender = try Self.sender()
    let bench = try WorkerBench(hooks: sender)
    bench.store.failHookAdditions(2)
    try await bench.run {
      bench.submit([Self.task("http://127.0.0.1:\(receiver.port)/")])
      try await eventually("all is posted") { receiver.posts.last?.sequence == 3 }
    }
    #expect(receiver.posts.map(\.sequence) == [1, 2, 3])
    await sender.close()
    await receiver.stop()
  }

  @Test("an answer of 500 is tried again with the same id, before the next event of the task")
  func triesAgain() async throws {
    // The failure is there to be seen until the second answer is recorded.
    let isSeen = Lock(false)
    let receiver = try await HookReceiver { _, count in
      guard count > 1 else { return HTTPResponse(500) }
      while !isSeen.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(20)) }
      return HTTPResponse(200)
    }
    let sender = try Self.sender()
    let bench = try WorkerBench(hooks: sender)
    let spec = Self.task("http://127.0.0.1:\(receiver.port)/")
    try await bench.run {
      bench.submit([spec])
      try await eventually("the failure is recorded") {
        try await bench.store.undeliveredHooks(of: spec.id).first?.error == "the receiver answered 500"
      }
      isSeen.withLock { $0 = true }
      try await eventually("all is posted") { receiver.posts.last?.sequence == 3 }
    }
    #expect(receiver.posts.map(\.sequence) == [1, 1, 2, 3])
    #expect(receiver.posts[0].id == receiver.posts[1].id && Set(receiver.posts.map(\.id)).count == 3)
    await sender.close()
    await receiver.stop()
  }

  @Test("a worker that dies between the post and its record leaves it to be posted again, with the same id")
  func postsAgain() async throws {
    let late = Lock<Int64>(0)
    let memory = MemoryStore(clock: {
      Timestamp(microseconds: Clocks.realtimeMicroseconds() + late.withLock { $0 } * 1_000_000)
    })
    let store = TestStore(memory)
    let receiver = try await HookReceiver { _, count in
      // The store is away when the worker wants to record.
      if count == 1 { store.setAway(true) }
      return HTTPResponse(200)
    }
    let sender = try Self.sender()
    let bench = try WorkerBench(store: store, hooks: sender)
    let spec = Self.task("http://127.0.0.1:\(receiver.port)/")
    try await bench.run {
      bench.submit([spec])
      try await eventually("it is posted") { receiver.posts.count == 1 }
      try await eventually("the record fails") { store.hookFailures > 0 }
      store.setAway(false)
      late.withLock { $0 = 61 }
      try await eventually("all is posted") { receiver.posts.last?.sequence == 3 }
    }
    #expect(receiver.posts.map(\.sequence) == [1, 1, 2, 3] && receiver.posts[0].id == receiver.posts[1].id)
    await sender.close()
    await receiver.stop()
  }

  @Test("the status of an answer counts, although its body is broken") func brokenBody() async throws {
    let origin = try OriginServer()
    let sender = try Self.sender()
    func send(_ path: String) async -> HookOutcome {
      await sender.send(HookMessage(url: origin.url(path), id: "1", body: Array("{}".utf8)))
    }
    origin.always("/ok", .answer(200, body: "no chunk"), .header("Transfer-Encoding", "chunked"))
    origin.always("/gone", .answer(410, body: "no chunk"), .header("Transfer-Encoding", "chunked"))
    origin.always("/nothing", .cut(after: nil))
    #expect(await send("/ok") == .delivered)
    #expect(await send("/gone") == .refused("the receiver answered 410 Gone"))
    guard case .failed = await send("/nothing") else {
      Issue.record("an answer that never came counts")
      return
    }
    await sender.close()
    origin.close()
  }

  @Test("a receiver's Retry-After is read as seconds or as a date, however long it is") func retryAfter() async throws {
    let origin = try OriginServer()
    let sender = try Self.sender()
    let values: [(String, ClosedRange<Int64>?)] = [
      ("7", 7...7), ("90000", 90_000...90_000), ("99999999999999999999", .max ... .max), ("-5", 0...0), ("soon", nil),
      ("Thu, 01 Jan 2015 00:00:00 GMT", 0...0), ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400...4_102_444_800),
    ]
    for (number, (value, seconds)) in values.enumerated() {
      origin.always("/\(number)", .answer(503, headers: [("Retry-After", value)], body: ""))
      let outcome = await sender.send(HookMessage(url: origin.url("/\(number)"), id: "1", body: Array("{}".utf8)))
      guard case .failed(_, let wait) = outcome else {
        Issue.record("\(value): \(outcome)")
        continue
      }
      #expect(wait.map { seconds?.contains($0.components.seconds) == true } ?? (seconds == nil), "\(value): \(outcome)")
    }
    await sender.close()
    origin.close()
  }

  @Test("the events of a task that was removed before they were published are posted, and so is its removal")
  func removed() async throws {
    let receiver = try await HookReceiver()
    let sender = try Self.sender()
    let bench = try WorkerBench(hooks: sender)
    let spec = Self.task("http://127.0.0.1:\(receiver.port)/")
    bench.sink.refuse(KafkaError(code: .timedOut, message: "nobody answers"))
    try await bench.run {
      bench.submit([spec])
      try await eventually("the task is over") { try await bench.state(spec.id) == .succeeded }
      bench.control(.remove, spec.id)
      try await eventually("the task is removed") { try await bench.state(spec.id) == nil }
      bench.sink.refuse(nil)
      try await eventually("all is posted") { receiver.posts.last?.sequence == 4 }
    }
    let kinds = ["submitted", "started", "succeeded", "removed"]
    #expect(receiver.posts.map(\.type) == kinds.map { "reelhaul.task.\($0)" })
    #expect(receiver.posts.map(\.sequence) == [1, 2, 3, 4])
    await sender.close()
    await receiver.stop()
  }

  @Test("410 ends an event at once, and the next one is posted") func gone() async throws {
    let receiver = try await HookReceiver { post, _ in HTTPResponse(post.sequence == 1 ? 410 : 200) }
    let sender = try Self.sender()
    let bench = try WorkerBench(hooks: sender)
    let spec = Self.task("http://127.0.0.1:\(receiver.port)/")
    try await bench.run {
      bench.submit([spec])
      try await eventually("all is posted") { receiver.posts.last?.sequence == 3 }
      let left = try await bench.store.undeliveredHooks(of: spec.id)
      #expect(left.first?.gaveUpAt != nil && left.first?.error == "the receiver answered 410 Gone")
      let metrics = String(decoding: await bench.worker.metricsSnapshot().bytes, as: UTF8.self)
      #expect(metrics.contains("\nreelhaul_hooks_given_up_total 1\n"))
    }
    #expect(receiver.posts.map(\.sequence) == [1, 2, 3])
    await sender.close()
    await receiver.stop()
  }

  @Test("that a host takes no events is told once, and that it takes them again, without the URL")
  func outage() async throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open("\(directory.path)/log", O_RDWR | O_CREAT)
    let log = Logger(level: .notice, format: .json, descriptor: file.raw)
    let receiver = try await HookReceiver { _, count in HTTPResponse(count > 2 ? 200 : 500) }
    let sender = try Self.sender()
    let bench = try WorkerBench(hooks: sender, log: log)
    try await bench.run {
      bench.submit((0..<2).map { _ in Self.task("http://127.0.0.1:\(receiver.port)/path?key=hush") })
      try await eventually("all is posted") { receiver.posts.count { $0.type == "reelhaul.task.succeeded" } == 2 }
    }
    log.close()
    let text = String(decoding: try file.contents(), as: UTF8.self)
    let lines = text.split(separator: "\n").filter { $0.contains("the web hooks at a host") }
    #expect(lines.count == 2 && lines.allSatisfy { $0.contains(#""host":"127.0.0.1""#) }, "\(lines)")
    #expect(lines.first?.contains("the receiver answered 500") == true && lines.first?.contains("warning") == true)
    #expect(!text.contains("hush") && !text.contains("/path"))
    await sender.close()
    await receiver.stop()
  }

  @Test("a receiver that does not answer holds up no other") func slow() async throws {
    let hold = Lock(true)
    let slow = try await HookReceiver { _, _ in
      while hold.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(20)) }
      return HTTPResponse(200)
    }
    let quick = try await HookReceiver()
    let sender = try Self.sender()
    let bench = try WorkerBench(hooks: sender)
    try await bench.run {
      bench.submit((0..<30).map { _ in Self.task("http://localhost:\(slow.port)/") })
      try await eventually("the slow one is asked") { slow.posts.count >= 4 }
      let spec = Self.task("http://127.0.0.1:\(quick.port)/")
      bench.submit([spec])
      try await eventually("the other is told") { quick.posts.last?.sequence == 3 }
      hold.withLock { $0 = false }
    }
    await sender.close()
    await slow.stop()
    await quick.stop()
  }

  /// Posts to hosts whose names begin with `hanging` do not return until `release`.
  private final class HangingSender: HookSending {
    private let isReleased = Lock(false)
    private let posted = Lock<[String]>([])

    func posts(to host: String) -> Int { posted.withLock { $0.count { $0.hasPrefix("http://\(host)") } } }

    func release() { isReleased.withLock { $0 = true } }

    func send(_ message: HookMessage) async -> HookOutcome {
      posted.withLock { $0.append(message.url) }
      while message.url.hasPrefix("http://hanging"), !isReleased.withLock({ $0 }), !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(20))
      }
      return .delivered
    }
  }

  @Test("many receivers that do not answer hold up no other") func manyAreSlow() async throws {
    let sender = HangingSender()
    let bench = try WorkerBench(hooks: sender)
    try await bench.run {
      bench.submit((0..<40).map { Self.task("http://hanging-\($0 % 4).example/") })
      try await eventually("they take the places that they can have") { sender.posts(to: "hanging") >= 12 }
      bench.submit([Self.task("http://quick.example/")])
      try await eventually("the other is told") { sender.posts(to: "quick") == 3 }
      sender.release()
    }
  }

  @Test(
    "addresses that are not permitted are not reached, neither directly nor by a redirect, nor are wrong certificates")
  func rules() async throws {
    let receiver = try await HookReceiver { post, _ in
      post.path == "/redirect" ? HTTPResponse(302, headers: ["Location": "/secret"]) : HTTPResponse(200)
    }
    func send(_ sender: HookSender, _ url: String) async -> HookOutcome {
      await sender.send(HookMessage(url: url, id: "1", body: Array("{}".utf8)))
    }
    let sender = try Self.sender()
    #expect(
      await send(sender, "http://127.0.0.1:\(receiver.port)/redirect")
        == .failed("the receiver answered 302, and redirects are not followed"))
    let strict = try Self.sender(allowed: [])
    guard case .failed(let reason, _) = await send(strict, "http://127.0.0.1:\(receiver.port)/private") else {
      Issue.record("a private address was reached")
      return
    }
    #expect(reason.contains("network policy"), "\(reason)")
    let authority = try TestCertificates.shared.get().authority
    let trusting = HookSender(permits: { _ in true }, caFile: authority)
    for server in TestCertificates.Server.allCases {
      let relay = try TLSRelay(to: UInt16(receiver.port), as: server)
      let outcome = await send(trusting, "https://127.0.0.1:\(relay.port)/tls/\(server.rawValue)")
      #expect((outcome == .delivered) == (server == .valid), "\(server): \(outcome)")
    }
    #expect(Set(receiver.posts.map(\.path)) == ["/redirect", "/tls/valid"])
    // Nothing signs it.
    #expect(receiver.posts.last?.headers["webhook-signature"] == nil)
    for sender in [sender, strict, trusting] { await sender.close() }
    await receiver.stop()
  }

  @Test("a hook is signed with the secret of its host, or else with the worker's") func secrets() async throws {
    let receiver = try await HookReceiver()
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/credentials.json"
    let text =
      #"{"hook": {"hosts": ["127.0.0.1:\#(receiver.port)"], "allowHTTP": true, "hookSecret": "whsec_AQIDBA=="}}"#
    try TestFile.write(text, to: path)
    let sender = HookSender(
      permits: { _ in true }, credentials: CredentialFile(path: path), secret: "the worker's")
    for host in ["127.0.0.1", "localhost"] {
      let url = "http://\(host):\(receiver.port)/"
      #expect(await sender.send(HookMessage(url: url, id: "1", body: [])) == .delivered)
    }
    #expect(HookReceiver.isSigned(receiver.posts[0], by: [1, 2, 3, 4]))
    #expect(HookReceiver.isSigned(receiver.posts[1], by: Array("the worker's".utf8)))
    await sender.close()
    await receiver.stop()
  }

  @Test("the waits grow to six hours, follow the receiver's wish, and end after three days") func waits() {
    let event = HookEvent(taskID: .random(), sequence: 1, kind: .started, url: "", host: "", json: [])
    let start = Timestamp(microseconds: 0)
    func decide(_ attempt: Int, after seconds: Int = 0, wish: Duration? = nil) -> HookPolicy.Decision {
      HookPolicy.decide(
        .failed("no", retryAfter: wish),
        of: HookDelivery(event: event, attempt: attempt, createdAt: start, age: .seconds(seconds), runAt: start),
        jitter: 0)
    }
    let waits = [5, 15, 45, 135, 405, 1215, 3645, 10935, 21600, 21600]
    #expect((1...10).map { decide($0) } == waits.map { HookPolicy.Decision.postpone(.seconds($0), "no") })
    #expect(decide(1, wish: .seconds(120)) == .postpone(.seconds(120), "no"))
    for wish in [86_400, Int.max] { #expect(decide(1, wish: .seconds(wish)) == .postpone(.seconds(21_600), "no")) }
    #expect(decide(50, after: 3 * 86_400) == .giveUp("no; given up after three days"))
  }
}
