import Foundation
import Glibc
import ReelhaulCodec
import ReelhaulSystem
import ReelhaulTestKit
import TaskCore
import TestKit
import Testing
import TransferEngine

@testable import ReelhaulWorker

/// Transfers of handlers, without a fleet.
@Suite struct HandlerTransferTests {
  private func withScript<Result: Codable & Sendable>(
    credential: String? = nil,
    _ script: @escaping @Sendable (TaskContext<Scripted<Result>.Checkpoint>) async throws -> Result,
    test body: (HandlerTest<Scripted<Result>>) async throws -> Void
  ) async throws {
    let test = try await HandlerTest(
      Scripted<Result>.Parameters(), change: { $0.credential = credential }, { Scripted(body: script) })
    try await body(test)
    await test.close()
  }

  @Test("a file is fetched under exactly the name that its handler gives it")
  func names() async throws {
    let origin = try OriginServer()
    origin.serve("/a", OriginFile(seed: 1, size: 1000))
    let url = origin.url("/a")
    try await withScript { context -> [String] in
      var names: [String] = []
      for name in ["100%25.mp4", "50%.mp4", "%2E%2E", "Ame\u{301}lie.mp4", "Am\u{e9}lie.mp4"] {
        let file = try await context.transfer.fetch(url, as: name)
        let scratch = try await context.scratch()
        var status = stat()
        if stat(file.location, &status) == 0, status.st_size == 1000 { names.append(name) }
        #expect(Array(file.location.utf8) == Array("\(scratch)/\(name)".utf8))
        _ = try await context.transfer.publish(file.location, to: "storage://default/\(names.count).mp4")
      }
      for name in ["", ".", "..", "a/b", "a\u{0}b"] {
        let error = await #expect(throws: TaskError.self) { _ = try await context.transfer.fetch(url, as: name) }
        #expect(name != "a/b" || error?.message == "\"a/b\" cannot be the name of a file: it has a '/'")
      }
      return names
    } test: { test in
      let run = try await test.run()
      #expect(run.output?.count == 5, "\(run)")
    }
    origin.close()
  }

  @Test("a file that is not the expected one is no file, and fails for good") func unexpected() async throws {
    let origin = try OriginServer()
    origin.serve("/a", OriginFile(seed: 1, size: 1000))
    let url = origin.url("/a")
    try await withScript { context -> [String] in
      func code(_ expect: Expectation) async -> String {
        var options = TaskTransfer.Options()
        options.expect = expect
        do {
          return "\(try await context.transfer.fetch(url, as: "a\(expect.bytes ?? 0)", options).bytes)"
        } catch {
          return (error as? TaskError).map { "\($0.code) \($0.meaning)" } ?? "\(error)"
        }
      }
      return [await code(Expectation(sha256: [UInt8](repeating: 0, count: 32))), await code(Expectation(bytes: 1000))]
    } test: { test in
      let run = try await test.run()
      #expect(run.output == ["digest_mismatch permanent", "1000"], "\(run)")
    }
    origin.close()
  }

  @Test("a transfer uses the credential of its options, or else the task's") func credentials() async throws {
    try await withScript(credential: "the-tasks") { context -> [String] in
      var messages: [String] = []
      for name in [nil, "its-own"] {
        var options = TaskTransfer.Options()
        options.credential = name
        do {
          _ = try await context.transfer.fetch("http://127.0.0.1:9/a", as: "a", options)
        } catch {
          messages.append("\(error)")
        }
      }
      return messages
    } test: { test in
      // This worker has none.
      let messages = try #require(try await test.run().output)
      #expect(messages.count == 2)
      #expect(messages.first?.hasSuffix("has no credential \"the-tasks\"") == true, "\(messages)")
      #expect(messages.last?.hasSuffix("has no credential \"its-own\"") == true, "\(messages)")
    }
  }

  @Test("a transfer whose bytes are on a volume that the next run has not begins anew") func otherVolume()
    async throws
  {
    let origin = try OriginServer()
    origin.serve("/a", OriginFile(seed: 1, size: 1000))
    let url = origin.url("/a")
    try await withScript { context -> Int64 in
      guard context.epoch == 1 else { return try await context.transfer.fetch(url, as: "a").bytes }
      let name = StagingName(task: TaskTransfer.id(of: "scratch/a", in: context.run), epoch: 1, generation: 0)
      let begun = DownloadCheckpoint(
        generation: 0, identity: SourceIdentity(finalURL: url, size: 1000, etag: "\"x\""), volume: .random(),
        stagingName: "\(name)")
      try await context.run.checkpoint(.init(checkpoint: begun.envelope), ofTransfer: "scratch/a")
      throw TaskError.retry("again", after: .zero)
    } test: { test in
      #expect(try await test.run().failure?.isRetryable == true)
      let run = try await test.resume()
      #expect(run.output == 1000, "\(run)")
    }
    origin.close()
  }

  @Test("the same name with another source begins anew, and what was given up does not outlive the success")
  func otherSource() async throws {
    let origin = try OriginServer()
    let size: Int64 = 20_000_000
    var (a, b) = (OriginFile(seed: 1, size: size), OriginFile(seed: 2, size: size))
    // As two mirrors may have it that count versions.
    (a.etag, b.etag, a.lastModified, b.lastModified) = ("\"1\"", "\"1\"", nil, nil)
    for (path, file) in [("/a", a), ("/b", b)] { origin.serve(path, file) }
    let gate = origin.hold("/a", from: size / 2)
    let (first, second) = (origin.url("/a?token=1"), origin.url("/b"))
    try await withScript { context -> String in
      /// Gives a transfer up of which some bytes are recorded.
      @Sendable func giveUp(_ name: String) async throws {
        let fetch = Task { try await context.transfer.fetch(first, as: name) }
        try await eventually("it is recorded") { context.run.transfersLeft["scratch/\(name)"] != nil }
        fetch.cancel()
        _ = await fetch.result
      }
      guard context.epoch == 2 else {
        try await giveUp("name")
        throw TaskError.retry("again", after: .zero)
      }
      try await giveUp("other")
      return try await context.transfer.fetch(second, as: "name").sha256 ?? ""
    } test: { test in
      #expect(try await test.run().failure?.isRetryable == true)
      let run = try await test.resume()
      #expect(run.output == Hex.encode(b.content.sha256(size: size)), "\(run)")
      let staging = "\(test.storagePath)/.reelhaul/staging"
      #expect(try FileManager.default.contentsOfDirectory(atPath: staging) == [])
    }
    gate.open()
    origin.close()
  }

  @Test("checkpoints of a handler and of its transfers that are recorded at once keep each other") func atOnce()
    async throws
  {
    try await withScript { context -> [String] in
      let numbers = 0..<50
      guard context.epoch == 1 else {
        let kept = numbers.count { context.run.transfersLeft["\($0)"] != nil }
        return [context.lastCheckpoint?.text ?? "", "\(kept)"]
      }
      for number in numbers {
        async let own: Void = context.checkpoint(.init(text: "\(number)"))
        async let transfer: Void = context.run.checkpoint(
          .init(checkpoint: Checkpoint(payload: Array("{}".utf8))), ofTransfer: "\(number)")
        _ = try await (own, transfer)
      }
      throw TaskError.retry("again", after: .zero)
    } test: { test in
      let first = try await test.run()
      #expect(first.failure?.isRetryable == true)
      let second = try await test.resume()
      #expect(second.output == ["49", "50"])
    }
  }

  @Test("a file whose run loses its task while it is synced is not published")
  func lostWhileSynced() async throws {
    let watched = Lock<DiskWatch?>(nil)
    try await withScript { context -> Bool in
      let disk = try #require(watched.withLock { $0 })
      let file = try await context.scratch() + "/film.mp4"
      try TextFile.write("film", to: file)
      disk.holdSyncs()
      let published = Task { try await context.transfer.publish(file, to: "storage://default/film.mp4") }
      try await eventually("its bytes are synced") { disk.heldSyncs > 0 }
      context.report(done: 1, total: 2)
      try await eventually("the task is lost") { context.stopReason == .abandoned }
      disk.releaseSyncs()
      await #expect(throws: OwnershipLostError.self) { _ = try await published.value }
      return true
    } test: { test in
      try await DiskWatch.run(below: test.storagePath) { disk in
        watched.withLock { $0 = disk }
        await test.stop(after: .report(1), as: .leaseLost)
        _ = try await test.run()
        #expect(access("\(test.storagePath)/film.mp4", F_OK) != 0)
        let staging = try FileDescriptor.open("\(test.storagePath)/.reelhaul/staging", O_RDONLY | O_DIRECTORY)
        #expect(try staging.entries() == [])
      }
    }
  }

  @Test("two transfers to one name at once fail the task with a reason, and one after the other does not")
  func sameName() async throws {
    let origin = try OriginServer()
    origin.serve("/a", OriginFile(seed: 1, size: 1000))
    let url = origin.url("/a")
    try await withScript { context -> Int in
      for _ in 0..<2 { _ = try await context.transfer.fetch(url, as: "same") }
      async let first = context.transfer.fetch(url, as: "same")
      async let second = context.transfer.fetch(url, as: "same")
      async let other = context.transfer.fetch(url, as: "other")
      _ = try await other
      _ = try await (first, second)
      return 1
    } test: { test in
      let run = try await test.run()
      let failure = try #require(run.failure, "\(run)")
      #expect(failure.code.rawValue == "transfer_twice" && !failure.isRetryable && failure.message.contains("same"))
    }
    origin.close()
  }

  @Test("a second file at one destination replaces the first of the run only if it may, and is never taken for it")
  func sameDestination() async throws {
    let origin = try OriginServer()
    for name in ["a", "b"] { origin.serve("/\(name)", OriginFile(seed: name == "a" ? 1 : 2, size: 1000)) }
    let (a, b) = (origin.url("/a"), origin.url("/b"))
    try await withScript { context -> [String] in
      func refused(_ body: () async throws -> Void) async -> Bool {
        do { try await body() } catch { return (error as? TaskError)?.code == "destination_exists" }
        return false
      }
      let place = "storage://default/same"
      let first = try await context.transfer.download(a, to: place)
      let again = try await context.transfer.download(a, to: place)
      let scratch = try await context.scratch()
      func publish() async throws {
        close(open("\(scratch)/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
        _ = try await context.transfer.publish("\(scratch)/f", to: "storage://default/own")
      }
      var answers = [first.sha256 == again.sha256]
      answers.append(await refused { _ = try await context.transfer.download(b, to: place) })
      try await publish()
      answers.append(await refused { try await publish() })
      var options = TaskTransfer.Options()
      options.ifExists = .replace
      let replaced = try await context.transfer.download(b, to: place, options)
      answers.append(replaced.sha256 != first.sha256)
      return answers.map { "\($0)" }
    } test: { test in
      let run = try await test.run()
      #expect(run.output == ["true", "true", "true", "true"], "\(run)")
    }
    origin.close()
  }

  @Test("only a file of the scratch directory can be published, by whichever path beneath it")
  func publishedPaths() async throws {
    try await withScript { context -> [String] in
      let scratch = try await context.scratch()
      mkdir("\(scratch)/out", 0o755)
      var names: [String] = []
      for path in ["/a", "//b", "/out//c", "/./d"] {
        close(open(scratch + path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644))
        let file = try await context.transfer.publish(scratch + path, to: "storage://default/\(names.count)")
        names.append(file.location)
      }
      for path in ["/../../f", "/out/../../f", "/..", "/", "//", "", "-other/f"] {
        let error = await #expect(throws: TaskError.self) {
          _ = try await context.transfer.publish(scratch + path, to: "storage://default/wrong")
        }
        #expect(error?.meaning == .permanent && error?.message.hasPrefix("only a file of the run's scratch") == true)
      }
      return names
    } test: { test in
      let run = try await test.run()
      #expect(run.output?.count == 4, "\(run)")
    }
  }

  @Test("a task records no more transfers than its next run can read, and fails with one more")
  func mostTransfers() async throws {
    let origin = try OriginServer()
    origin.serve("/a", OriginFile(seed: 1, size: 1000))
    let url = origin.url("/a")
    try await withScript { context -> String in
      guard context.epoch == 1 else { return "read" }
      for number in 0..<300 {
        do {
          try await context.run.checkpoint(
            .init(checkpoint: Checkpoint(payload: Array("{}".utf8))), ofTransfer: "\(number)")
        } catch {
          break
        }
      }
      // One that was begun may still go on.
      try await context.run.checkpoint(.init(checkpoint: Checkpoint(payload: Array("[]".utf8))), ofTransfer: "0")
      return try await context.transfer.fetch(url, as: "a").location
    } test: { test in
      let failure = try #require(try await test.run().failure)
      #expect(failure.code.rawValue == "checkpoint_too_long" && !failure.isRetryable, "\(failure)")
      #expect(try await test.resume().output == "read")
    }
    origin.close()
  }

  @Test("the progress of a transfer ends with all of its bytes, however short it is, also if the file is there already")
  func lastProgress() async throws {
    let origin = try OriginServer()
    origin.serve("/a", OriginFile(seed: 1, size: 3_000_000))
    let url = origin.url("/a")
    try await withScript { context -> Int in
      for _ in 0..<2 {
        let last = Lock<[Int64?]>([])
        var options = TaskTransfer.Options()
        options.onProgress = { done, total in last.withLock { $0 = [done, total] } }
        let file = try await context.transfer.download(url, to: "storage://default/a", options)
        #expect(file.bytes == 3_000_000)
        #expect(last.withLock { $0 } == [3_000_000, 3_000_000])
      }
      return 1
    } test: { test in
      let run = try await test.run()
      #expect(run.output == 1, "\(run)")
    }
    origin.close()
  }

  @Test(
    "a progress closure that blocks holds up no other transfer, and is called once at a time", .timeLimit(.minutes(1)))
  func blockingProgress() async throws {
    let origin = try OriginServer()
    origin.serve("/a", OriginFile(seed: 1, size: 1000))
    let url = origin.url("/a")
    try await withScript { context -> [Int64] in
      let (isCalled, isFree, calls) = (Lock(false), Lock(false), Lock((running: 0, most: 0)))
      var options = TaskTransfer.Options()
      options.onProgress = { _, _ in
        calls.withLock { $0 = ($0.running + 1, max($0.most, $0.running + 1)) }
        isCalled.withLock { $0 = true }
        while !isFree.withLock({ $0 }) { usleep(1000) }
        calls.withLock { $0.running -= 1 }
      }
      async let first = context.transfer.fetch(url, as: "first", options)
      while !isCalled.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
      let second = try await context.transfer.fetch(url, as: "second")
      isFree.withLock { $0 = true }
      let bytes = [try await first.bytes, second.bytes]
      #expect(calls.withLock { $0.running == 0 && $0.most == 1 })
      return bytes
    } test: { test in
      let output = try await test.run().output
      #expect(output == [1000, 1000])
    }
    origin.close()
  }
}
