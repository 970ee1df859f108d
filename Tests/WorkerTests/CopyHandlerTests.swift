import Glibc
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// Copies as a worker runs them, between real storages, an origin and a store.
@Suite struct CopyHandlerTests {
  private static let film = OriginFile(seed: 1, size: 3 << 20)
  private static let another = OriginFile(seed: 2, size: 3 << 20)

  @Test("a file goes from each place to each, and the output says where it is", arguments: CopyPlace.pairs)
  func pair(from: CopyPlace, to: CopyPlace) async throws {
    try await CopyBench.run { bench in
      for size: Int64 in [0, 1, 100_000, 3 << 20] {
        let file = OriginFile(seed: UInt64(size), size: size)
        try bench.serve(file)
        let outcome = try await bench.run(
          bench.spec(from, to) {
            $0.ifExists = .replace
            $0.expect = .init(
              sha256: file.content.sha256(size: size), md5: digest(.md5, of: file.bytes), bytes: size)
          })
        let output = try #require(outcome.output, "\(outcome)")
        #expect(output.bytes == size)
        if to != .tus { #expect(output.location == bench.destination(to)) }
        if to == .storage { #expect(output.verified == .sha256) }
        if to == .tus {
          #expect(bench.server.objects.values.contains { $0.size == size && $0.matches(file.content) })
        } else {
          #expect(try bench.bytes(at: to) == file.bytes)
        }
      }
      #expect(try bench.leftOver.isEmpty)
    }
  }

  @Test("a copy to a storage claims no proof that nobody asked for") func verified() async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      func verified(_ change: (inout TaskSpec) -> Void) async throws -> UploadOutput.Verified? {
        try await bench.run(
          bench.spec(.web, .storage) {
            $0.ifExists = .replace
            change(&$0)
          }
        ).output?.verified
      }
      let (md5, sha256) = (digest(.md5, of: Self.film.bytes), digest(.sha256, of: Self.film.bytes))
      #expect(try await verified { _ in } == .size)
      #expect(try await verified { $0.expect.md5 = md5 } == .md5)
      #expect(try await verified { $0.expect.sha256 = sha256 } == .sha256)
    }
  }

  @Test("a file that is at the destination already is kept, skipped or replaced", arguments: CopyPlace.pairs)
  func existing(from: CopyPlace, to: CopyPlace) async throws {
    // A tus server never has one: every upload gets a place of its own.
    guard to != .tus else { return }
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      try bench.make(Self.another.bytes, at: to)
      let failed = try await bench.run(bench.spec(from, to) { $0.ifExists = .fail })
      #expect(failed.failure?.code == .destinationExists && failed.failure?.class == .fail)
      let skipped = try await bench.run(bench.spec(from, to) { $0.ifExists = .skip })
      #expect(skipped.output != nil)
      #expect(try bench.bytes(at: to) == Self.another.bytes)
      let replaced = try await bench.run(bench.spec(from, to) { $0.ifExists = .replace })
      #expect(replaced.output?.bytes == Self.film.size)
      #expect(try bench.bytes(at: to) == Self.film.bytes)
      #expect(try bench.leftOver.isEmpty)
    }
  }

  @Test("a file that is not as expected does not appear", arguments: CopyPlace.pairs)
  func expectation(from: CopyPlace, to: CopyPlace) async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      for expect: TaskCore.Expectation in [
        .init(sha256: Self.another.content.sha256(size: Self.another.size)), .init(md5: Array(repeating: 1, count: 16)),
        .init(bytes: 17),
      ] {
        let run = try await bench.claim(
          bench.spec(from, to) {
            $0.expect = expect
            if from == .web { $0.source += "?signature=a-secret" }
          })
        let failure = await bench.run(run).failure
        #expect([.digestMismatch, .sizeMismatch].contains(failure?.code), "\(expect)")
        #expect(failure?.message.contains("a-secret") == false)
        #expect(failure?.class == .fail || from != .storage && to == .storage)
        #expect(try bench.bytes(at: to) == nil)
        try await bench.cleanUp(try await bench.crash(run))
        #expect(try bench.leftOver.isEmpty)
      }
    }
  }

  @Test("a source that changes in the middle is copied anew, and versions are never mixed", arguments: CopyPlace.pairs)
  func changes(from: CopyPlace, to: CopyPlace) async throws {
    try await CopyBench.run { bench in
      // Of more than one request also for a download.
      let (film, another) = (OriginFile(seed: 5, size: 6 << 20), OriginFile(seed: 6, size: 6 << 20))
      try bench.serve(film)
      bench.origin.script(CopyBench.path) { [origin = bench.origin] request in
        if request.number == 2 { origin.serve(CopyBench.path, another) }
        return []
      }
      // In place: the file is the same, and its bytes are not.
      let changeFile = { @Sendable [bench] in
        try? bench.write(another.bytes, to: "\(bench.directory.path)/root/film.mp4")
      }
      bench.server.script { [server = bench.server] request in
        if request.operation == .getObject, request.ordinal == 2 {
          server.put("films/film.mp4", another.content, size: another.size)
        }
        if from == .storage, request.operation.hasContent, request.ordinal == 1 { changeFile() }
        return []
      }
      let run = try await bench.claim(bench.spec(from, to) { $0.rate = 1 << 20 })
      let task = Task { await bench.run(run) }
      if from == .storage, to == .storage {
        try await eventually("some bytes are copied") { run.ledger.bytesDone > 256 << 10 }
        changeFile()
      }
      let outcome = await task.value
      #expect(outcome.output?.bytes == another.size, "\(outcome)")
      #expect(try bench.bytes(at: to) == another.bytes)
      #expect(try bench.leftOver.isEmpty)
    }
  }

  @Test("a version that a server tells only by its date is not mixed either, nor continued by another worker")
  func weakSource() async throws {
    try await CopyBench.run { bench in
      let film = Self.film.with { $0.etag = nil }
      bench.origin.serve(CopyBench.path, film)
      bench.origin.script(CopyBench.path) { [origin = bench.origin] request in
        if request.number == 3 { origin.serve(CopyBench.path, Self.another.with { $0.etag = "W/\"x\"" }) }
        return []
      }
      let outcome = try await bench.run(bench.spec(.web, .tus))
      #expect(outcome.output?.bytes == Self.another.size, "\(outcome)")
      #expect(try bench.bytes(at: .tus) == Self.another.bytes)
    }
  }

  @Test(
    "versions of one length that a server does not tell apart are not mixed", arguments: [CopyPlace.web, .tus],
    ["W/\"0\"", "null"])
  func equalValidators(to: CopyPlace, tag: String) async throws {
    let versions = [Self.film, Self.another].map { version in
      version.with { ($0.etag, $0.lastModified) = (tag, nil) }
    }
    for change in 2...6 {
      try await CopyBench.run { bench in
        bench.origin.serve(CopyBench.path, versions[0])
        bench.origin.script(CopyBench.path) { [origin = bench.origin] request in
          if request.number == change { origin.serve(CopyBench.path, versions[1]) }
          return []
        }
        let outcome = try await bench.run(bench.spec(.web, to) { $0.ifExists = .replace })
        #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
        let copied = try bench.bytes(at: to)
        #expect(versions.contains { $0.bytes == copied }, "the source changes with request \(change)")
      }
    }
  }

  @Test(
    "a copy whose worker dies or is stopped goes on in another worker", arguments: CopyPlace.pairs, [true, false])
  func resume(pair: (CopyPlace, CopyPlace), kills: Bool) async throws {
    let (from, to) = pair
    // A PUT is one request: it is sent again.
    guard to != .web else { return }
    try await CopyBench.run { bench in
      let file = OriginFile(seed: 3, size: 12 << 20)
      try bench.serve(file)
      var run = try await bench.claim(bench.spec(from, to) { $0.rate = 256 << 10 })
      for round in 1...2 {
        let recorded = Lock(0)
        bench.front.onCheckpoint { recorded.withLock { $0 += 1 } }
        let before = run.claim.checkpoint?.bytesDone ?? 0
        try await bench.interrupt(run, kills: kills) {
          try await eventually("round \(round) copies and records") {
            let isRecorded = to == .tus || !kills || recorded.withLock { $0 } > 0
            return isRecorded && run.ledger.bytesDone > before + 256 << 10
          }
        }
        run = try await bench.crash(run)
        let checkpoint = try #require(run.claim.checkpoint)
        #expect(checkpoint.bytesTotal == file.size && checkpoint.generation == 0)
        if to == .storage { #expect(checkpoint.bytesDone > before) }
      }
      if from == .storage, to == .storage {
        // The mark shows that these bytes are not copied again.
        let name = try #require(try bench.leftOver.first)
        try FileDescriptor.open(bench.stagingPath(name), O_WRONLY).write("kept", at: 0)
      }
      run.claim.spec.rate = nil
      let outcome = await bench.run(run)
      #expect(outcome.output?.bytes == file.size, "\(outcome)")
      let isMarked = from == .storage && to == .storage
      let expected = isMarked ? Array("kept".utf8) + file.bytes.dropFirst(4) : file.bytes
      #expect(try bench.bytes(at: to) == expected)
      #expect(try bench.leftOver.isEmpty)
      if to == .tus { #expect(bench.server.bytesReceived < 2 * file.size) }
    }
  }

  @Test("a verified file whose worker dies before it is published is not copied again", arguments: [true, false])
  func publishing(isPublished: Bool) async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      let run = try await bench.claim(bench.spec(.storage, .storage))
      // Every checkpoint of this short copy says that it publishes.
      if !isPublished { bench.front.onCheckpoint { run.ledger.disown() } }
      let outcome = await bench.run(run)
      #expect((outcome == .stopped) == !isPublished)
      #expect(try (bench.bytes(at: .storage) != nil) == isPublished)
      try bench.write(Self.another.bytes, to: "\(bench.directory.path)/root/film.mp4")
      let next = try await bench.crash(run)
      #expect(next.claim.checkpoint?.stage == Checkpoint.publishing)
      let end = await bench.run(next)
      #expect(end.output?.bytes == Self.film.size)
      #expect(try bench.bytes(at: .storage) == Self.film.bytes)
      #expect(try bench.leftOver.isEmpty)
    }
  }

  @Test("a canceled copy leaves nothing", arguments: CopyPlace.pairs) func cancel(from: CopyPlace, to: CopyPlace)
    async throws
  {
    try await CopyBench.run { bench in
      try bench.serve(OriginFile(seed: 4, size: 12 << 20))
      let run = try await bench.claim(bench.spec(from, to) { $0.rate = 256 << 10 })
      try await bench.interrupt(run, kills: false) {
        try await eventually("some bytes are copied") { run.ledger.bytesDone > 256 << 10 }
      }
      let next = try await bench.crash(run)
      if to != .web { #expect(try !bench.leftOver.isEmpty) }
      try await bench.cleanUp(next)
      #expect(try bench.leftOver.isEmpty)
      #expect(try bench.bytes(at: to) == nil)
    }
  }

  @Test("a source that is missing waits for another attempt, a storage that is unknown for another worker")
  func missing() async throws {
    try await CopyBench.run { bench in
      let failure = try await bench.run(bench.spec(.storage, .storage)).failure
      #expect(failure?.code == .sourceMissing && failure?.class == .retry)
      let web = try await bench.run(bench.spec(.web, .web)).failure
      #expect(web?.code == .http(404) && web?.class == .fail)
      let object = try await bench.run(bench.spec(.s3, .web)).failure
      #expect(object?.code.rawValue == "s3_no_such_key" && object?.class == .fail)
      #expect(try bench.leftOver.isEmpty)
    }
  }
}

/// What only a remote source does.
@Suite struct CopyFromWebTests {
  private static let film = OriginFile(seed: 1, size: 3 << 20)

  @Test("answers that end early or fail are asked for again") func retries() async throws {
    try await CopyBench.run { bench in
      bench.origin.serve(CopyBench.path, Self.film)
      bench.origin.script(CopyBench.path) { request in
        switch request.number {
        case 1, 4: [.answer(503)]
        case 3: [.cut(after: 1000)]
        case 5: [.shortBody(by: 10)]
        default: []
        }
      }
      let outcome = try await bench.run(bench.spec(.web, .web))
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      #expect(try bench.bytes(at: .web) == Self.film.bytes)
    }
  }

  @Test("servers may send less than was asked for") func shortAnswers() async throws {
    try await CopyBench.run { bench in
      bench.origin.serve(CopyBench.path, Self.film)
      bench.origin.always(CopyBench.path, .limitsRange(to: 100_000))
      let outcome = try await bench.run(bench.spec(.web, .web))
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      #expect(try bench.bytes(at: .web) == Self.film.bytes)
    }
  }

  @Test("only the range that is asked for is read, with the entity tag as a condition") func ranges() async throws {
    try await CopyBench.run { bench in
      bench.origin.serve(CopyBench.path, Self.film)
      let outcome = try await bench.run(bench.spec(.web, .web))
      #expect(outcome.output != nil)
      let parts = bench.origin.exchanges(CopyBench.path).dropFirst()
      #expect(parts.allSatisfy { $0.request["if-match"] == Self.film.etag && $0.request.range != nil })
      #expect(parts.map(\.sent.count).max() == 1 << 20)
    }
  }

  @Test(
    "a file without ranges, a length or a validator is held if it is short, and refused if it is long",
    arguments: [0, 1, 2])
  func unranged(lacking: Int) async throws {
    try await CopyBench.run { bench in
      for size: Int64 in [1 << 20, 65 << 20] {
        bench.origin.serve(
          CopyBench.path,
          lacking == 2
            ? OriginFile(seed: 1, size: size).withoutValidators()
            : OriginFile(seed: 1, size: size).with {
              if lacking == 0 { $0.acceptsRanges = false } else { $0.tellsLength = false }
            })
        let outcome = try await bench.run(bench.spec(.web, .web) { $0.ifExists = .replace })
        if size == 1 << 20 {
          #expect(outcome.output?.bytes == size, "\(outcome)")
        } else {
          #expect(outcome.failure?.code == .sourceInvalid && outcome.failure?.class == .fail, "\(outcome)")
          #expect(outcome.failure?.message.contains("at most 67108864 bytes") == true)
        }
        #expect(bench.server.objects["put/film.mp4"]?.size == 1 << 20)
      }
    }
  }

  @Test("the task's header fields and its credential go to the source alone, and not where it redirects")
  func secrets() async throws {
    let mirror = try OriginServer()
    defer { mirror.close() }
    mirror.serve("/mirror.mp4", Self.film)
    try await CopyBench.run { bench in
      let relay = try TLSRelay(to: bench.origin.port)
      let other = try TLSRelay(to: mirror.port)
      defer {
        relay.close()
        other.close()
      }
      let credentials = #"{"archive": {"bearer": "secret-word", "hosts": ["127.0.0.1:\#(relay.port)"]}}"#
      try bench.write(Array(credentials.utf8), to: bench.credentials)
      bench.origin.serve(CopyBench.path, Self.film)
      bench.origin.script(CopyBench.path) { request in
        [.redirect(to: other.url("/mirror.mp4?signature=secret-value"))]
      }
      let spec = bench.spec(.web, .web) {
        $0.source = relay.url(CopyBench.path)
        $0.credential = "archive"
        $0.headers = [HeaderField(name: "X-Film", value: "one")]
      }
      let outcome = try await bench.run(spec)
      #expect(outcome.output != nil, "\(outcome)")
      let asked = bench.origin.exchanges(CopyBench.path).map(\.request)
      #expect(asked.allSatisfy { $0["authorization"] == "Bearer secret-word" && $0["x-film"] == "one" })
      let others = mirror.exchanges("/mirror.mp4").map(\.request)
      #expect(others.count > 1 && others.allSatisfy { $0["authorization"] == nil && $0["x-film"] == nil })
      #expect(bench.server.exchanges.allSatisfy { $0.request["authorization"] == nil && $0.request["x-film"] == nil })
      mirror.always("/mirror.mp4", .answer(410))
      let gone = try await bench.run(
        bench.spec(.web, .web) {
          $0.source = relay.url(CopyBench.path)
          $0.credential = "archive"
          $0.ifExists = .replace
        }
      ).failure
      #expect(gone?.code == .http(410) && gone?.message.contains("secret") == false)
      // For neither end.
      let refused = try await bench.run(bench.spec(.web, .web) { $0.credential = "archive" }).failure
      #expect(refused?.code == .credentialRefused && refused?.class == .fail)
    }
  }

  /// A copy to a server reads its source twice, and only what is read first has the digest.
  @Test("a redirect from https to http is followed only to a storage, and if a SHA-256 is expected")
  func withoutTLS() async throws {
    try await CopyBench.run { bench in
      let relay = try TLSRelay(to: bench.origin.port)
      defer { relay.close() }
      bench.origin.serve(CopyBench.path, Self.film)
      bench.origin.script("/over-tls.mp4") { _ in [.redirect(to: bench.origin.url(CopyBench.path))] }
      for to in [CopyPlace.web, .storage] {
        var spec = bench.spec(.web, to) { $0.source = relay.url("/over-tls.mp4") }
        #expect(try await bench.run(spec).failure?.code == .redirectRefused)
        spec.id = .random()
        spec.expect.sha256 = Self.film.content.sha256(size: Self.film.size)
        #expect(try await bench.run(spec).failure?.code == (to == .web ? .redirectRefused : nil))
      }
    }
  }

  @Test("a redirect that never ends is not followed") func loop() async throws {
    try await CopyBench.run { bench in
      bench.origin.script(CopyBench.path) { [url = bench.origin.url(CopyBench.path)] _ in [.redirect(to: url)] }
      let failure = try await bench.run(bench.spec(.web, .web)).failure
      #expect(failure?.code == .redirectLoop && failure?.class == .fail)
      #expect(bench.origin.exchanges(CopyBench.path).count == 11)
    }
  }
}
