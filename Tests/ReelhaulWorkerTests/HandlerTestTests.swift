import Glibc
import ReelhaulSystem
import ReelhaulTestKit
import Testing

/// Five steps, each with a checkpoint.
struct Stepper: TaskHandler {
  struct Parameters: Codable, Sendable {
    var steps = 5
    /// Added later.
    var note: String?
  }
  struct Checkpoint: Codable, Equatable, Sendable { var step: Int }
  struct Output: Codable, Equatable, Sendable { var steps: Int, ran: [Int] }
  static let kind = "stepper"
  static let aliases = ["old-stepper"]

  static func validate(_ parameters: Parameters) throws {
    guard parameters.steps > 0 else { throw TaskError.permanent("there must be a step") }
  }

  func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> Output {
    var ran: [Int] = []
    for step in (context.lastCheckpoint?.step ?? 0)..<parameters.steps {
      try Task.checkCancellation()
      ran.append(step + 1)
      context.report(done: Int64(step + 1), total: Int64(parameters.steps))
      try await context.checkpoint(Checkpoint(step: step + 1))
    }
    return Output(steps: parameters.steps, ran: ran)
  }
}

/// Does what a test says.
struct Scripted<Result: Codable & Sendable>: TaskHandler {
  typealias Output = Result
  struct Parameters: Codable, Sendable {}
  struct Checkpoint: Codable, Equatable, Sendable { var text: String }
  static var kind: String { "scripted" }
  var policy = TaskPolicy()
  var body: @Sendable (TaskContext<Checkpoint>) async throws -> Result

  func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> Result {
    try await body(context)
  }
}

private struct Strange: Error, CustomStringConvertible { var description: String }

@Suite struct HandlerTestTests {
  private func withStepper(
    _ parameters: Stepper.Parameters = .init(), _ body: (HandlerTest<Stepper>) async throws -> Void
  ) async throws {
    let test = try await HandlerTest(parameters) { Stepper() }
    try await body(test)
    await test.close()
  }

  private func withScript<Result: Codable & Sendable>(
    policy: TaskPolicy = TaskPolicy(),
    script: @escaping @Sendable (TaskContext<Scripted<Result>.Checkpoint>) async throws -> Result,
    test body: (HandlerTest<Scripted<Result>>) async throws -> Void
  ) async throws {
    let test = try await HandlerTest(Scripted<Result>.Parameters()) { Scripted(policy: policy, body: script) }
    try await body(test)
    await test.close()
  }

  @Test("a run that succeeds gives its output, its checkpoints, its reports and its events")
  func success() async throws {
    try await withStepper { test in
      let run = try await test.run()
      #expect(run.output == Stepper.Output(steps: 5, ran: [1, 2, 3, 4, 5]))
      #expect(run.checkpoints.map(\.step) == [1, 2, 3, 4, 5])
      #expect(
        run.reports.map(\.done) == [1, 2, 3, 4, 5] && run.reports.last?.total == 5 && run.attempt == 1 && run.epoch == 1
      )
      #expect(try await test.events == [.submitted, .started, .succeeded])
    }
  }

  @Test("after a crash behind checkpoint 2 of 5, another worker goes on from checkpoint 2")
  func crash() async throws {
    try await withStepper { test in
      await test.stop(after: .checkpoint(2), as: .crash)
      let first = try await test.run()
      #expect(first.isCrashed && first.checkpoints.map(\.step) == [1, 2])
      let second = try await test.resume()
      #expect(second.firstCheckpoint?.step == 2 && second.epoch == 2)
      #expect(second.output?.ran == [3, 4, 5])
      #expect(try await test.events == [.submitted, .started, .released, .started, .succeeded])
    }
  }

  @Test("a crash behind a report cancels the handler's code, which does nothing that counts", .timeLimit(.minutes(1)))
  func crashBehindReport() async throws {
    let wasCanceled = Lock(false)
    try await withScript { context -> Int in
      guard context.epoch == 1 else { return context.lastCheckpoint == nil ? 1 : 2 }
      context.report(done: 1)
      try? await Task.sleep(for: .seconds(3600))
      wasCanceled.withLock { $0 = Task.isCancelled }
      try await context.checkpoint(.init(text: "late"))
      return 3
    } test: { test in
      await test.stop(after: .report(1), as: .crash)
      let first = try await test.run()
      #expect(first.isCrashed && first.checkpoints.isEmpty && first.reports.count == 1)
      while !wasCanceled.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
      #expect(try await test.resume().output == 1)
    }
  }

  @Test("a paused run stops, and a resumed one goes on from its last checkpoint")
  func pause() async throws {
    try await withStepper { test in
      await test.stop(after: .checkpoint(3), as: .pause)
      let first = try await test.run()
      #expect(first.stopped == .pause)
      #expect(try await test.state == .paused)
      let second = try await test.resume()
      #expect(second.output?.ran == [4, 5])
    }
  }

  @Test("a run that has lost its lease is refused its next checkpoint, and its output is void")
  func leaseLost() async throws {
    try await withStepper { test in
      await test.stop(after: .checkpoint(1), as: .leaseLost)
      let first = try await test.run()
      #expect(first.isOwnershipLost && first.checkpoints.count == 1)
      #expect(try await test.resume().firstCheckpoint?.step == 1)
      #expect(try await test.state == .succeeded)
    }
  }

  @Test("a handler that goes on after its lease is lost cannot make its task succeed")
  func zombie() async throws {
    try await withScript { context -> Int in
      try? await context.checkpoint(.init(text: "one"))
      return 1
    } test: { test in
      await test.stop(after: .checkpoint(1), as: .leaseLost)
      let run = try await test.run()
      let state = try await test.state
      #expect(run.isOwnershipLost && state == .queued)
    }
  }

  @Test("drain and cancel are told to the handler", arguments: [HandlerStop.drain, .cancel, .timeout])
  func reasons(stop: HandlerStop) async throws {
    try await withStepper { test in
      await test.stop(after: .report(2), as: stop)
      // The stop comes at the same time as the next steps.
      let run = try await test.run()
      if let reason = run.stopped {
        #expect(reason == (stop == .drain ? .drain : stop == .cancel ? .cancel : .timedOut))
      } else {
        #expect(run.output != nil)
      }
    }
  }

  @Test("typed failures decide what becomes of the task")
  func failures() async throws {
    try await withScript { _ -> Int in
      throw TaskError.permanent("no such codec", code: "codec_unknown")
    } test: { test in
      let failure = try #require(try await test.run().failure)
      #expect(failure.code.rawValue == "codec_unknown" && failure.message == "no such codec" && !failure.isRetryable)
      #expect(try await test.state == .failed)
    }
    try await withScript { context -> Int in
      if context.attempt == 1 { throw TaskError.retry("busy", after: .seconds(30)) }
      return context.attempt
    } test: { test in
      let first = try await test.run()
      #expect(first.failure?.retryAfter == 30)
      let second = try await test.resume()
      #expect(second.output == 2)
    }
    try await withScript { context -> Int in
      if context.epoch == 1 { throw TaskError.wait("the GPU is away", for: .seconds(10)) }
      return context.attempt
    } test: { test in
      _ = try await test.run()
      // The attempt did not count.
      #expect(try await test.resume().output == 1)
    }
  }

  @Test(
    "a wait of any length is bounded, and ends no process",
    arguments: [Duration.seconds(1e19), .seconds(Int64.max), .seconds(-1e19), .milliseconds(1)])
  func longWaits(duration: Duration) async throws {
    for error in [TaskError.wait("later", for: duration), .retry("later", after: duration)] {
      try await withScript { _ -> Int in
        throw error
      } test: { test in
        let failure = try #require(try await test.run().failure)
        #expect(failure.retryAfter == (duration < .zero ? 0 : duration > .seconds(1) ? 3600 : 1))
      }
    }
  }

  @Test("another error is tried again, with its text bounded and secrets masked")
  func foreignError() async throws {
    let text =
      "GET https://user:hunter2@host/a?sig=abcdef&x=1 failed, password=hunter3, Authorization: Bearer abc.def.ghi "
    try await withScript(policy: TaskPolicy(maxAttempts: 2)) { _ -> Int in
      throw Strange(description: text + String(repeating: "x", count: 5000))
    } test: { test in
      let failure = try #require(try await test.run().failure)
      #expect(failure.isRetryable && failure.message.count <= 1000)
      for secret in ["hunter2", "abcdef", "hunter3", "abc.def.ghi"] { #expect(!failure.message.contains(secret)) }
      #expect(failure.message.contains("Strange") && failure.message.contains("host/a"))
      _ = try await test.resume()
      #expect(try await test.state == .failed)
    }
  }

  @Test("a handler that begins anew, and comes now further and now less far, has a last attempt")
  func neverFurther() async throws {
    let runs = Lock(0)
    try await withScript(policy: TaskPolicy(maxAttempts: 3)) { context -> Int in
      context.report(done: 10, total: 100)
      try await context.checkpoint(.init(text: "begun"))
      let run = runs.withLock { runs in
        runs += 1
        return runs
      }
      if run.isMultiple(of: 2) {
        context.report(done: 50, total: 100)
        try await context.checkpoint(.init(text: "half"))
      }
      throw TaskError.retry("it failed")
    } test: { test in
      _ = try await test.run()
      for _ in 0..<10 where try await test.state != .failed { _ = try await test.resume() }
      #expect(try await test.state == .failed)
    }
  }

  @Test("an error with a NUL, or of megabytes in one character, becomes one that can be stored")
  func storableErrors() async throws {
    let megabytes = "e" + String(repeating: "\u{301}", count: 1 << 20)
    for text in ["a\u{0}b", megabytes] {
      for error in [TaskError.retry(text, code: text), Strange(description: text)] as [any Error] {
        try await withScript { _ -> Int in
          throw error
        } test: { test in
          let failure = try #require(try await test.run().failure)
          #expect(!failure.message.utf8.contains(0) && !failure.code.rawValue.utf8.contains(0))
          #expect(failure.message.utf8.count <= 16_100 && failure.code.rawValue.utf8.count <= 66)
          #expect(failure.message.contains(text == megabytes ? "e\u{301}" : "a b") || text == megabytes)
        }
      }
    }
  }

  @Test(
    "the code of an error is a word of at most 64 bytes, or the standard one",
    arguments: [
      (TaskError.permanent("no", code: String(repeating: "e", count: 80)), String(repeating: "e", count: 64)),
      (.permanent("", code: ""), "failed"), (.retry("no", code: "not a word"), "failed"),
      (.retry("no", code: "\u{e9}"), "failed"), (.wait("no", for: .seconds(5), code: "a,b"), "waiting"),
      (.wait("no", for: .seconds(5), code: "http.busy-2"), "http.busy-2"),
    ])
  func codes(error: TaskError, code: String) async throws {
    try await withScript { _ -> Int in
      throw error
    } test: { test in
      let failure = try #require(try await test.run().failure)
      #expect(failure.code.rawValue == code)
    }
  }

  @Test("a handler that throws OwnershipLostError although it owns its task has failed an attempt")
  func ownershipLostWithoutCause() async throws {
    try await withScript(policy: TaskPolicy(maxAttempts: 2)) { _ -> Int in
      throw OwnershipLostError()
    } test: { test in
      let failure = try #require(try await test.run().failure)
      #expect(failure.code.rawValue == "handler_error" && failure.message.contains("no longer owns"))
      _ = try await test.resume()
      #expect(try await test.state == .failed)
    }
  }

  @Test("a number that is not finite fails the task at once, in an output and in a checkpoint")
  func notFinite() async throws {
    try await withScript { _ in
      ["loudness": [1, Double.nan]]
    } test: { test in
      let failure = try #require(try await test.run().failure)
      #expect(failure.code.rawValue == "json_invalid" && !failure.isRetryable)
      #expect(failure.message.contains("loudness[1]"), "\(failure.message)")
    }
    struct Measuring: TaskHandler {
      struct Parameters: Codable, Sendable {}
      struct Checkpoint: Codable, Sendable { var level: Double }
      static let kind = "measuring"

      func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> NoOutput {
        try await context.checkpoint(Checkpoint(level: .infinity))
        return NoOutput()
      }
    }
    let test = try await HandlerTest(Measuring.Parameters()) { Measuring() }
    let failure = try #require(try await test.run().failure)
    #expect(failure.code.rawValue == "json_invalid" && !failure.isRetryable && failure.message.contains("level"))
    await test.close()
  }

  /// PostgreSQL would store it, and then no worker could claim the task.
  @Test("a text with NUL fails the task at once, in an output and in a checkpoint", arguments: [true, false])
  func textsWithNUL(inCheckpoint: Bool) async throws {
    try await withScript { context -> String in
      if inCheckpoint { try await context.checkpoint(.init(text: "a\u{0}b")) }
      return "a\u{0}b"
    } test: { test in
      let run = try await test.run()
      #expect(run.failure?.code.rawValue == "json_invalid" && run.failure?.isRetryable == false)
      #expect(run.checkpoints.isEmpty && run.failure?.message.contains("NUL") == true)
    }
  }

  @Test("the stage of a checkpoint has at most 256 bytes, and no NUL")
  func stages() async throws {
    let stored = Lock<[String?]>([])
    try await withScript { context -> String in
      for stage in ["cut\u{0}ting", String(repeating: "s", count: 256)] {
        try await context.checkpoint(.init(text: "one"), stage: stage)
        stored.withLock { $0.append(context.run.recordedStage) }
      }
      let reserved = await #expect(throws: TaskError.self) {
        try await context.checkpoint(.init(text: "two"), stage: "publishing")
      }
      #expect(reserved?.code == "stage_reserved")
      do {
        try await context.checkpoint(.init(text: "two"), stage: String(repeating: "s", count: 257))
        return "recorded"
      } catch let error as TaskError {
        return error.message
      }
    } test: { test in
      let run = try await test.run()
      #expect(run.output == "the stage has 257 bytes, and may have 256" && run.checkpoints.count == 2)
      #expect(stored.withLock { $0 } == ["cut ting", String(repeating: "s", count: 256)])
    }
  }

  @Test("a file that cannot be published is still in the scratch directory, and goes with the run")
  func failedPublish() async throws {
    try await withScript { context -> [String] in
      let scratch = try await context.scratch()
      mkdir("\(scratch)/out", 0o755)
      for (index, name) in ["film.mp4", "out/film.mp4"].enumerated() {
        close(open("\(scratch)/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
        _ = try await context.transfer.publish("\(scratch)/\(name)", to: "storage://default/\(index).mp4")
        close(open("\(scratch)/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
        await #expect(throws: TaskError.self) {
          _ = try await context.transfer.publish("\(scratch)/\(name)", to: "storage://default/0.mp4/x.mp4")
        }
        // The file is back at its path, and can be published elsewhere.
        _ = try await context.transfer.publish("\(scratch)/\(name)", to: "storage://default/other-\(index).mp4")
        close(open("\(scratch)/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
        await #expect(throws: TaskError.self) {
          _ = try await context.transfer.publish("\(scratch)/\(name)", to: "storage://default/0.mp4/x.mp4")
        }
      }
      return [scratch]
    } test: { test in
      let scratch = try #require(try await test.run().output?.first)
      #expect(access(scratch, F_OK) != 0)
      let staging = try FileDescriptor.open("\(test.storagePath)/.reelhaul/staging", O_RDONLY | O_DIRECTORY)
      #expect(try staging.entries() == [])
    }
  }

  @Test("a checkpoint of 64 KiB is recorded, and one of a byte more is refused")
  func checkpointSize() async throws {
    try await withScript { context -> String in
      let longest = 64 << 10 - #"{"text":""}"#.utf8.count
      try await context.checkpoint(.init(text: String(repeating: "a", count: longest)))
      do {
        try await context.checkpoint(.init(text: String(repeating: "a", count: longest + 1)))
        return "recorded"
      } catch let error as TaskError {
        return error.code
      }
    } test: { test in
      let run = try await test.run()
      #expect(run.output == "checkpoint_too_long" && run.checkpoints.count == 1)
    }
  }

  @Test("an output of more than 64 KiB is a permanent failure")
  func outputSize() async throws {
    try await withScript { _ in
      String(repeating: "a", count: 70_000)
    } test: { test in
      let failure = try #require(try await test.run().failure)
      #expect(failure.code.rawValue == "output_too_long" && !failure.isRetryable)
    }
  }

  @Test("parameters that the kind's own check refuses cannot be submitted")
  func invalidParameters() async throws {
    await #expect(throws: InvalidTask.self) { _ = try await HandlerTest(Stepper.Parameters(steps: 0)) { Stepper() } }
  }

  @Test("the scratch directory is empty at first, and gone when the run has ended")
  func scratch() async throws {
    try await withScript { context -> String in
      let path = try await context.scratch()
      #expect(try await context.scratch() == path)
      return path
    } test: { test in
      let path = try #require(try await test.run().output)
      #expect(path.hasPrefix(test.storagePath))
      #expect(access(path, F_OK) != 0)
    }
  }

  @Test("the path of a stored file is given where a file is there, beneath its root and by no link")
  func pathOfAFile() async throws {
    try await withScript { context -> [String] in
      var answers: [String] = []
      for url in [
        "storage://default/films/a.mp4", "storage://default/absent", "storage://default/films",
        "storage://default/link", "storage://default/up/a.mp4", "storage://other/a.mp4", "storage://default/../a",
        "https://example.org/a",
      ] {
        do {
          answers.append(try await context.transfer.path(of: url))
        } catch let error as TaskError {
          let meaning = "\(error.meaning)".prefix { $0 != "(" }
          answers.append("\(error.code), \(meaning)")
        }
      }
      return answers
    } test: { test in
      let root = test.storagePath
      mkdir("\(root)/films", 0o755)
      close(open("\(root)/films/a.mp4", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
      symlink("films/a.mp4", "\(root)/link")
      symlink("/tmp", "\(root)/up")
      let answers = try #require(try await test.run().output)
      #expect(
        answers == [
          "\(root)/films/a.mp4", "storage_error, retry", "destination_invalid, permanent",
          "destination_invalid, permanent", "destination_invalid, permanent", "storage_unknown, wait",
          "destination_invalid, permanent", "destination_invalid, permanent",
        ])
    }
  }
}
