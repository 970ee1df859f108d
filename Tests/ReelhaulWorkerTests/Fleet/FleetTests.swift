import Glibc
import ReelhaulClient
import ReelhaulCodec
import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import ReelhaulWorker
import TaskCore
import TaskStore
import TestKit
import Testing
import WorkerCore

/// Handlers of somebody's own in workers of this process, over a real fleet.
@Suite(.serialized) struct FleetTests {
  private static func scripted<Result: Codable & Sendable>(
    _ policy: TaskPolicy = TaskPolicy(),
    _ body: @escaping @Sendable (TaskContext<Scripted<Result>.Checkpoint>) async throws -> Result
  ) -> Scripted<Result> {
    Scripted(policy: policy, body: body)
  }

  // MARK: Progress

  @Test("ten thousand reports a second leave the worker as at most four messages a second", .timeLimit(.minutes(5)))
  func reports() async throws {
    try await HandlerFleet.run { fleet in
      let handler = Self.scripted { context -> Int64 in
        let start = ContinuousClock.now
        var reported: Int64 = 0
        for tick in 1...600 {
          for _ in 0..<100 {
            reported += 1
            context.report(done: reported, total: 60_000)
          }
          try await Task.sleep(until: start + .milliseconds(10 * tick))
        }
        return reported
      }
      try await fleet.withWorker(handler) { _ in
        let task = try await fleet.submit("scripted")
        #expect(try await fleet.tests.wait(for: task, .succeeded).outputText == "60000")
      }
      let samples = try await fleet.tests.records(of: "progress").map { try ProgressJSON.decode($0) }
      #expect(samples.count > 4)
      #expect(samples.contains { $0.sample.bytesDone > 0 } && samples.allSatisfy { $0.sample.bytesTotal == 60_000 })
      for (former, later) in zip(samples, samples.dropFirst(4)) {
        #expect(later.at.microseconds - former.at.microseconds >= 990_000)
      }
    }
  }

  // MARK: Transfers

  /// What a handler's call of `context.transfer` for the URL in a label comes to: bytes, or the code of its error.
  private static let fetch = scripted { context -> String in
    do {
      return "\(try await context.transfer.fetch(context.labels["url"] ?? "", as: "file").bytes)"
    } catch let error as TaskError {
      return error.code
    }
  }

  @Test("a file that an earlier run has downloaded is the next run's, and no other task's", .timeLimit(.minutes(5)))
  func downloadedBefore() async throws {
    try await HandlerFleet.run { fleet in
      let file = OriginFile(seed: 3, size: 300_000)
      fleet.tests.origin.serve("/a", file)
      let attempts = Lock(0)
      let handler = Self.scripted { context -> String in
        let url = context.labels["url"] ?? ""
        let made = try await context.transfer.download(url, to: "storage://default/made.mp4")
        // As a run whose worker dies before its next checkpoint.
        let attempt = attempts.withLock { attempts in
          attempts += 1
          return attempts
        }
        guard attempt > 1 else { throw TaskError.retry("again", after: .zero) }
        return "\(made.bytes) \(made.sha256 ?? "")"
      }
      try await fleet.withWorker(handler) { _ in
        let task = try await fleet.submit("scripted") { $0.labels["url"] = fleet.tests.origin.url("/a") }
        let made = try await fleet.tests.wait(for: task, .succeeded).outputText
        #expect(made == "\"300000 \(Hex.encode(file.content.sha256(size: file.size)))\"")
        #expect(fleet.tests.origin.exchanges("/a").count == 1)
        let other = try await fleet.submit("scripted") { $0.labels["url"] = fleet.tests.origin.url("/a") }
        #expect(try await fleet.tests.wait(for: other, .failed).error?.code == .destinationExists)
      }
    }
  }

  @Test(
    "a transfer of a handler does not reach addresses that the worker may not, and says so in a TaskError",
    .timeLimit(.minutes(5)))
  func addresses() async throws {
    try await HandlerFleet.run { fleet in
      fleet.tests.origin.serve("/a", OriginFile(seed: 1, size: 1000))
      func result(_ host: String) async throws -> String? {
        let task = try await fleet.submit("scripted") { $0.labels["url"] = fleet.tests.origin.url("/a", host: host) }
        return try await fleet.tests.wait(for: task, .succeeded).outputText
      }
      try await fleet.withWorker(Self.fetch, adjust: { $0.allowedNetworks = [] }) { _ in
        for host in ["127.0.0.1", "localhost", "169.254.169.254", "[::1]", "10.0.0.1", "[::ffff:127.0.0.1]"] {
          let refused = try await result(host)
          let code = host.hasPrefix("169.254.") ? "address_gives_credentials" : "address_refused"
          #expect(refused == "\"\(code)\"", "\(host)")
        }
      }
      #expect(fleet.tests.origin.exchanges("/a").isEmpty)
      try await fleet.withWorker(Self.fetch) { _ in
        let allowed = try await result("127.0.0.1")
        #expect(allowed == #""1000""#)
        let refused = try await result("169.254.169.254")
        #expect(refused == #""address_gives_credentials""#, "it is not among the allowed")
      }
    }
  }

  @Test("a transfer of a handler keeps the task's rate", .timeLimit(.minutes(5)))
  func rate() async throws {
    try await HandlerFleet.run { fleet in
      fleet.tests.origin.serve("/a", OriginFile(seed: 1, size: 600_000))
      try await fleet.withWorker(Self.fetch) { _ in
        let start = Clocks.boottime()
        let task = try await fleet.submit("scripted") { spec in
          spec.rate = 200_000
          spec.labels["url"] = fleet.tests.origin.url("/a")
        }
        #expect(try await fleet.tests.wait(for: task, .succeeded).outputText == #""600000""#)
        // A quarter of a second's bytes pass at once; the other 550,000 need 2.75 s at least.
        #expect(Clocks.boottime() - start >= 2_700_000_000)
      }
    }
  }

  @Test("tasks of a handler that name their source keep the limit of its host", .timeLimit(.minutes(5)))
  func host() async throws {
    try await HandlerFleet.run { fleet in
      fleet.tests.origin.serve("/a", OriginFile(seed: 1, size: 100_000))
      let url = fleet.tests.origin.url("/a")
      let counts = Lock((running: 0, most: 0))
      let handler = Self.scripted { context -> Int64 in
        counts.withLock { counts in
          counts.running += 1
          counts.most = max(counts.most, counts.running)
        }
        defer { counts.withLock { $0.running -= 1 } }
        return try await context.transfer.fetch(context.task.source, as: "file").bytes
      }
      try await fleet.store.setLimit(.host, name: "127.0.0.1", to: 2)
      try await fleet.withWorker(handler) { _ in
        try await fleet.withWorker(handler) { _ in
          var tasks: [UniqueID] = []
          for _ in 0..<12 { tasks.append(try await fleet.submit("scripted") { $0.source = url }) }
          try await fleet.tests.waitForSuccess(of: tasks)
        }
      }
      #expect((1...2).contains(counts.withLock { $0.most }))
    }
  }

  // MARK: Stopping

  @Test(
    "a handler that ignores its cancellation loses its task, the worker says so, and the drain does not wait for it",
    .timeLimit(.minutes(5)))
  func stubborn() async throws {
    try await HandlerFleet.run { fleet in
      let (release, wait) = (Lock(false), Lock([String]()))
      let handler = Self.scripted { context -> String in
        let isFirst = wait.withLock { waited in
          waited.append("begun")
          return waited.count == 1
        }
        guard isFirst else { return "next" }
        // A task of its own is not canceled with the run. It blocks no thread: there may be as few as two of them.
        while !release.withLock({ $0 }) { await Task { try? await Task.sleep(for: .milliseconds(10)) }.value }
        do {
          try await context.checkpoint(.init(text: "late"))
          wait.withLock { $0.append("recorded") }
        } catch {
          wait.withLock { $0.append("\(type(of: error))") }
        }
        return "late"
      }
      try await fleet.store.setLimit(.kind, name: "scripted", to: 1)
      let first = try await fleet.submit("scripted")
      try await fleet.withWorker(
        handler,
        adjust: { configuration in
          configuration.settings.watchdog = Watchdog(grace: .milliseconds(300))
          configuration.settings.drainLimit = .seconds(30)
        }
      ) { worker in
        try await fleet.tests.wait(for: first, .running)
        // Commands of two tasks may be carried out in any order, so the next comes only now.
        let second = try await fleet.submit("scripted")
        try await fleet.control(.pause, first)
        // Its share of the limit is free for the next.
        #expect(try await fleet.tests.wait(for: second, .succeeded).outputText == #""next""#)
        #expect(try await fleet.store.task(first)?.state == .paused)
        #expect(await worker.hasHangingCalls)
      }
      let lines = fleet.log.split(separator: "\n").filter { $0.contains("a run does not stop") }
      #expect(lines.count == 1 && lines[0].contains("\(first)"))
      #expect(try await fleet.store.audit() == [])
      release.withLock { $0 = true }
      try await TestKit.eventually("it has tried to record") { wait.withLock { $0.count } == 3 }
      #expect(wait.withLock { $0 } == ["begun", "begun", "OwnershipLostError"])
      #expect(try await fleet.store.task(first)?.state == .paused)
    }
  }

  @Test("an attempt that takes longer than its kind allows is stopped, and has failed", .timeLimit(.minutes(5)))
  func timeout() async throws {
    try await HandlerFleet.run { fleet in
      let reason = Lock<TaskStopReason?>(nil)
      let handler = Self.scripted(TaskPolicy(maxAttempts: 1, timeout: .seconds(1))) { context -> Int in
        while !Task.isCancelled {
          context.heartbeat()
          try? await Task.sleep(for: .milliseconds(20))
        }
        reason.withLock { $0 = context.stopReason }
        throw CancellationError()
      }
      try await fleet.withWorker(handler) { _ in
        let task = try await fleet.submit("scripted")
        let document = try await fleet.tests.wait(for: task, .failed, within: .seconds(60))
        #expect(document.error?.code == .runTimedOut && document.attempt == 1)
      }
      #expect(reason.withLock { $0 } == .timedOut)
    }
  }

  @Test(
    "a heartbeat, a report and a checkpoint each show that a run is alive, without any progress",
    .timeLimit(.minutes(5)))
  func signsOfLife() async throws {
    try await HandlerFleet.run { fleet in
      let handler = Self.scripted { context -> Int in
        let (sign, start) = (context.labels["sign"] ?? "", ContinuousClock.now)
        while ContinuousClock.now - start < .seconds(5) {
          switch sign {
          case "heartbeat": context.heartbeat()
          case "report": context.report(done: 1)
          default: try await context.checkpoint(.init(text: "alive"))
          }
          try await Task.sleep(for: .milliseconds(200))
        }
        return 1
      }
      try await fleet.withWorker(handler, adjust: { $0.settings.watchdog = Watchdog(patience: .seconds(3)) }) { _ in
        var tasks: [String: UniqueID] = [:]
        for sign in ["heartbeat", "report", "checkpoint"] {
          tasks[sign] = try await fleet.submit("scripted") { $0.labels["sign"] = sign }
        }
        for (sign, task) in tasks {
          let document = try await fleet.tests.wait(for: task, "an end") { $0.state.isFinal || $0.error != nil }
          #expect(document.state == .succeeded && document.attempt == 1, "\(sign)")
        }
      }
    }
  }

  // MARK: Sizes

  @Test(
    "parameters, checkpoint and output of exactly 64 KiB pass, and one byte more is refused for good",
    .timeLimit(.minutes(5)))
  func sizes() async throws {
    try await HandlerFleet.run { fleet in
      let handler = Sized()
      try await fleet.withWorker(handler) { _ in
        func run(_ what: String, _ bytes: Int) async throws -> TaskDocument {
          let task = try await fleet.submit("sized", #"{"bytes":\#(bytes),"what":"\#(what)"}"#)
          return try await fleet.tests.wait(for: task, what) { $0.state.isFinal }
        }
        #expect(try await run("output", 65_536).output?.count == 65_536)
        #expect(try await run("output", 65_537).error?.code.rawValue == "output_too_long")
        #expect(try await run("checkpoint", 65_536).outputText == #""recorded 65536""#)
        #expect(try await run("checkpoint", 65_537).error?.code.rawValue == "checkpoint_too_long")
        #expect(try await run("checkpoint", 1 << 20).error?.code.rawValue == "checkpoint_too_long")

        func parameters(_ bytes: Int) -> String {
          let text = #"{"bytes":0,"what":"none","fill":""}"#
          return text.dropLast(2) + String(repeating: "x", count: bytes - text.utf8.count) + #""}"#
        }
        let task = try await fleet.submit("sized", parameters(65_536))
        #expect(try await fleet.tests.wait(for: task, .succeeded).spec.parameters?.count == 65_536)
        var long = Sized.Parameters(bytes: 0, what: "none", fill: "")
        long.fill = String(repeating: "x", count: 65_536 - (try TaskSpec(Sized.self, long).parameters?.count ?? 0))
        #expect(try TaskSpec(Sized.self, long).parameters?.count == 65_536)
        long.fill?.append("x")
        #expect(throws: InvalidTask.self) { _ = try TaskSpec(Sized.self, long) }
      }
    }
  }

  @Test(
    "deeply nested parameters of 64 KiB crash neither a worker nor the database, and the limit is the same everywhere",
    .timeLimit(.minutes(5)))
  func nesting() async throws {
    try await HandlerFleet.run { fleet in
      func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      }
      let producer = try KafkaProducer(KafkaConfiguration(bootstrap: fleet.tests.bootstrap))
      let topics = TopicPlan(prefix: fleet.tests.prefix)
      try await fleet.withWorker(Sized()) { _ in
        // Another client than ours may send anything.
        for bytes in [nested(32_000), nested(33), #"{"a":"# + nested(31_000) + "}"] {
          let command =
            #"{"command":"submit","task":{"id":"\#(UniqueID.make())","kind":"sized","parameters":\#(bytes)}}"#
          try await producer.send(topic: topics.commands, key: nil, value: Array(command.utf8))
        }
        let letters = try await KafkaReader.open(
          KafkaConfiguration(bootstrap: fleet.tests.bootstrap), topics: [topics.deadLetters], from: .beginning)
        var count = 0
        while count < 3, let records = try await letters.next() { count += records.count }
        await letters.close()
        #expect(count == 3)

        // As deep as may be: through the store, the handler and the events, there and back.
        for what in ["none", "nest checkpoint", "nest output"] {
          let parameters = #"{"bytes":32,"what":"\#(what)","nested":\#(nested(31))}"#
          let document = try await fleet.tests.wait(for: fleet.submit("sized", parameters), .succeeded)
          #expect(document.spec.parameters == Array(parameters.utf8))
          if what == "nest output" { #expect(document.outputText == nested(32)) }
        }
        for what in ["nest checkpoint", "nest output"] {
          let task = try await fleet.submit("sized", #"{"bytes":33,"what":"\#(what)"}"#)
          let document = try await fleet.tests.wait(for: task, what) { $0.state.isFinal }
          #expect(document.error?.code.rawValue == "json_invalid" && document.attempt == 1)
        }
      }
      await producer.close()
      #expect(try await fleet.tests.problemsOfEvents() == [])
    }
  }

  // MARK: Failures

  @Test(
    "a foreign error keeps its text, bounded and with its secrets masked, wherever it is shown", .timeLimit(.minutes(5))
  )
  func foreignError() async throws {
    struct Strange: Error, CustomStringConvertible { var description: String }
    try await HandlerFleet.run { fleet in
      let handler = Self.scripted(TaskPolicy(maxAttempts: 1)) { _ -> Int in
        throw Strange(
          description: "codec h999 of https://user:hunter2@host/a?sig=abcdef with token=s3cr3t is unknown "
            + String(repeating: "x", count: 100_000))
      }
      try await fleet.withWorker(handler) { _ in
        let task = try await fleet.submit("scripted")
        let document = try await fleet.tests.wait(for: task, "a failure") { $0.state == .failed }
        let error = try #require(document.error)
        #expect(error.code.rawValue == "handler_error" && error.message.count == 1000)
        #expect(error.message.contains("Strange: codec h999 of https://") && error.message.contains("@host/a"))
        let shown = try await fleet.tests.run(["show", "\(task)", "--json"]).output
        let events = try await fleet.tests.events()
        let published = events.compactMap { $0.task?.error?.message }.joined()
        #expect(published.contains("codec h999"))
        for secret in ["hunter2", "abcdef", "s3cr3t"] {
          for text in [error.message, shown, published, fleet.log] { #expect(!text.contains(secret)) }
        }
      }
    }
  }

  @Test(
    "parameters that do not decode fail for good on the first attempt, and the message names the place",
    .timeLimit(.minutes(5)))
  func wrongParameters() async throws {
    try await HandlerFleet.run { fleet in
      try await fleet.withWorker(Sized()) { _ in
        for (parameters, place) in [
          (#"{"bytes":"many","what":"none"}"#, "parameters.bytes: expected Int"),
          (#"{"bytes":1}"#, "parameters.what: it is missing"),
          (#"{"bytes":1,"what":"none","list":[{"n":1},{"n":"two"}]}"#, "parameters.list[1].n: expected Int"),
        ] {
          let task = try await fleet.submit("sized", parameters)
          let document = try await fleet.tests.wait(for: task, "a failure") { $0.state == .failed }
          #expect(document.error?.code == .parametersInvalid && document.attempt == 1 && document.epoch == 1)
          #expect(document.error?.message.contains(place) == true, "\(document.error?.message ?? "")")
        }
      }
    }
  }

  @Test("two handlers of one kind or alias end the worker at its start, and the error names both types")
  func twoOfAKind() async throws {
    struct Other: TaskHandler {
      struct Parameters: Codable, Sendable {}
      static let kind = "old-stepper"
      func run(_ parameters: Parameters, context: TaskContext<NoCheckpoint>) async throws -> NoOutput { NoOutput() }
    }
    struct Downloads: TaskHandler {
      struct Parameters: Codable, Sendable {}
      static let kind = "download"
      func run(_ parameters: Parameters, context: TaskContext<NoCheckpoint>) async throws -> NoOutput { NoOutput() }
    }
    func error(_ handlers: any TaskHandler...) async -> String {
      let environment = ["REELHAUL_KAFKA": "127.0.0.1:9", "REELHAUL_POSTGRES": "postgres://127.0.0.1:9/none"]
      do {
        try await ReelhaulWorker.run(handlers: handlers, environment: environment)
        return "it ran"
      } catch {
        return "\(error)"
      }
    }
    let alias = await error(Stepper(), Other())
    for part in ["the kind old-stepper has two handlers", ".Stepper", "Other"] {
      #expect(alias.contains(part), "\(alias)")
    }
    let builtIn = await error(Downloads())
    for part in ["the kind download has two handlers", "DownloadHandler", "Downloads"] {
      #expect(builtIn.contains(part), "\(builtIn)")
    }
  }
}

/// Records and returns as much as it is told to.
private struct Sized: TaskHandler {
  struct Parameters: Codable, Sendable {
    struct Item: Codable, Sendable { var n: Int }
    var bytes: Int
    var what: String
    var fill: String?
    var nested: Nested?
    var list: [Item]?
  }
  struct Nested: Codable, Sendable {
    var inner: [Nested]

    init(depth: Int) { inner = depth > 1 ? [Nested(depth: depth - 1)] : [] }
    init(from decoder: any Decoder) throws { inner = try [Nested](from: decoder) }
    func encode(to encoder: any Encoder) throws { try inner.encode(to: encoder) }
  }
  enum Value: Codable, Sendable {
    case text(String)
    case nested(Nested)

    init(from decoder: any Decoder) throws {
      if let text = try? decoder.singleValueContainer().decode(String.self) {
        self = .text(text)
      } else {
        self = .nested(try Nested(from: decoder))
      }
    }
    func encode(to encoder: any Encoder) throws {
      switch self {
      case .text(let text): try text.encode(to: encoder)
      case .nested(let nested): try nested.encode(to: encoder)
      }
    }
  }
  typealias Checkpoint = Value
  typealias Output = Value
  static let kind = "sized"

  func run(_ parameters: Parameters, context: TaskContext<Value>) async throws -> Value {
    // With its quotes it is as long as the parameters say.
    let text = Value.text(String(repeating: "x", count: max(0, parameters.bytes - 2)))
    switch parameters.what {
    case "output": return text
    case "checkpoint":
      if case .text(let last)? = context.lastCheckpoint { return .text("recorded \(last.utf8.count + 2)") }
      try await context.checkpoint(text)
      throw TaskError.retry("once more, from the checkpoint", after: .zero)
    case "nest checkpoint":
      if context.lastCheckpoint != nil { return .text("read") }
      try await context.checkpoint(.nested(Nested(depth: parameters.bytes)))
      throw TaskError.retry("once more, from the checkpoint", after: .zero)
    case "nest output": return .nested(Nested(depth: parameters.bytes))
    default: return .text("")
    }
  }
}
