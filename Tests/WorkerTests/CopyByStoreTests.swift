import Glibc
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// Copies from S3 to S3 that the store makes by itself, because one credential is for both ends.
@Suite struct CopyByStoreTests {
  private static let film = OriginFile(seed: 1, size: 26 << 20)
  private static let another = OriginFile(seed: 2, size: 26 << 20)

  private static func spec(_ bench: CopyBench, _ change: (inout TaskSpec) -> Void = { _ in }) -> TaskSpec {
    bench.spec(.s3, .s3) {
      $0.parameters = Array(#"{"partSize":5242880}"#.utf8)
      change(&$0)
    }
  }

  @Test("the store copies a long object in parts, each of the version that was seen, and the worker gets no part")
  func parts() async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      let outcome = try await bench.run(Self.spec(bench))
      #expect(outcome.output?.bytes == Self.film.size && outcome.output?.verified == .size, "\(outcome)")
      #expect(try bench.bytes(at: .s3) == Self.film.bytes)
      let copies = bench.server.exchanges(.uploadPartCopy).map(\.request)
      #expect(copies.compactMap(\.partNumber).sorted() == [1, 2, 3, 4, 5, 6])
      let etag = try #require(bench.server.objects["films/film.mp4"]?.etag)
      #expect(copies.allSatisfy { $0["x-amz-copy-source-if-match"] == etag })
      #expect(bench.server.exchanges(.uploadPart).isEmpty)
      // One look at its begin, and one byte at its end.
      let ranges = bench.server.exchanges(.getObject).compactMap { $0.request["range"] }
      #expect(ranges == ["bytes=0-65535", "bytes=0-0"])
      #expect(try bench.leftOver.isEmpty)
    }
  }

  @Test("the store copies a short object at once where it may be replaced, and else it is sent with a condition")
  func short() async throws {
    try await CopyBench.run { bench in
      let film = OriginFile(seed: 3, size: 3 << 20)
      for mayReplace in [true, false] {
        bench.server.delete("copies/film.mp4")
        try bench.serve(film)
        let outcome = try await bench.run(
          Self.spec(bench) {
            $0.ifExists = mayReplace ? .replace : .fail
            $0.parameters = Array(#"{"contentType":"video/mp4"}"#.utf8)
          })
        #expect(outcome.output?.bytes == film.size, "\(outcome)")
        #expect(try bench.bytes(at: .s3) == film.bytes)
        let object = try #require(bench.server.objects["copies/film.mp4"])
        #expect(object.headers["content-type"] == "video/mp4" && object.metadata["reelhaul-generation"] == "0")
        #expect(bench.server.exchanges(.copyObject).count == 1)
        #expect(bench.server.exchanges(.putObject).count(where: \.wasApplied) == (mayReplace ? 0 : 1))
      }
      #expect(bench.server.exchanges(.putObject).allSatisfy { $0.request["if-none-match"] == "*" })
    }
  }

  @Test("a worker that takes over copies only the parts that the store does not list", arguments: [true, false])
  func resumes(kills: Bool) async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      let gate = OriginGate()
      bench.server.script { request in
        request.operation == .uploadPartCopy && request.ordinal > 3 ? [.status(503), .holdAnswer(gate)] : []
      }
      let run = try await bench.claim(Self.spec(bench))
      try await bench.interrupt(run, kills: kills) {
        // One of the three may be the last, which is short. Two are never longer.
        try await eventually("three parts are copied") { run.ledger.bytesDone > 2 * (5 << 20) }
      }
      gate.open()
      let before = bench.server.exchanges(.uploadPartCopy)
      let there = Set(before.filter(\.wasApplied).compactMap(\.request.partNumber))
      bench.server.script { _ in [] }
      let outcome = await bench.run(try await bench.crash(run))
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      #expect(try bench.bytes(at: .s3) == Self.film.bytes)
      let after = bench.server.exchanges(.uploadPartCopy).dropFirst(before.count).compactMap(\.request.partNumber)
      #expect(after.sorted() == (1...6).filter { !there.contains($0) })
      #expect(bench.server.exchanges(.createUpload).count == 1)
      #expect(try bench.leftOver.isEmpty)
    }
  }

  @Test(
    "a lost answer, a success with an error inside and a store that is busy are tried again",
    arguments: [StoreFault.closeAfterApplying, .lieComplete200WithError(), .slowDown(times: 1), .truncatedXML],
    [26, 3])
  func faults(fault: StoreFault, mebibytes: Int64) async throws {
    try await CopyBench.run { bench in
      let film = OriginFile(seed: 4, size: mebibytes << 20)
      try bench.serve(film)
      bench.server.script { request in
        [.uploadPartCopy, .copyObject].contains(request.operation) && request.ordinal <= 2 ? [fault] : []
      }
      let outcome = try await bench.run(Self.spec(bench) { $0.ifExists = .replace })
      #expect(outcome.output?.bytes == film.size && outcome.output?.remark == nil, "\(outcome)")
      #expect(try bench.bytes(at: .s3) == film.bytes)
      let sent = bench.server.exchanges(.uploadPart) + bench.server.exchanges(.putObject)
      #expect(sent.isEmpty)
      #expect(try bench.leftOver.isEmpty)
    }
  }

  @Test("a source that is replaced in the middle is a new upload, the old one is aborted, and versions are not mixed")
  func changes() async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      bench.server.script { [server = bench.server] request in
        if request.operation == .uploadPartCopy, request.ordinal == 3 {
          server.put("films/film.mp4", Self.another.content, size: Self.another.size)
        }
        return []
      }
      let outcome = try await bench.run(Self.spec(bench))
      #expect(outcome.output?.bytes == Self.another.size, "\(outcome)")
      #expect(try bench.bytes(at: .s3) == Self.another.bytes)
      #expect(bench.server.objects["copies/film.mp4"]?.metadata["reelhaul-generation"] == "1")
      #expect(bench.server.exchanges(.createUpload).count == 2)
      #expect(bench.server.exchanges(.abortUpload).count == 1)
      #expect(try bench.leftOver.isEmpty)
    }
  }

  private static let refusals: [[StoreFault]] = [
    [.status(501)], [.status(405)], [.ignoreCopySource],
    [.status(403, body: "<Error><Code>AccessDenied</Code></Error>")], [.lieComplete200WithError(code: "AccessDenied")],
  ]

  @Test(
    "where the store does not copy, the bytes go through the worker, and the output says so",
    arguments: refusals.indices, [26, 3])
  func refuses(refusal: Int, mebibytes: Int64) async throws {
    try await CopyBench.run { bench in
      let film = OriginFile(seed: 5, size: mebibytes << 20)
      try bench.serve(film)
      bench.server.script { request in
        [.uploadPartCopy, .copyObject].contains(request.operation) ? Self.refusals[refusal] : []
      }
      let outcome = try await bench.run(Self.spec(bench) { $0.ifExists = .replace })
      #expect(outcome.output?.bytes == film.size && outcome.output?.verified == .crc32c, "\(outcome)")
      #expect(outcome.output?.remark?.contains("through the worker") == true)
      #expect(try bench.bytes(at: .s3) == film.bytes)
      #expect(try bench.leftOver.isEmpty)
    }
  }

  @Test("an empty object of a store that knows no copies does not pass for the copy, whichever worker finds it")
  func emptyObject() async throws {
    try await CopyBench.run { bench in
      let film = OriginFile(seed: 6, size: 3 << 20)
      try bench.serve(film)
      let run = try await bench.claim(Self.spec(bench) { $0.ifExists = .replace })
      bench.server.script { request in
        guard request.operation == .copyObject else { return [] }
        run.ledger.disown()
        return [.ignoreCopySource]
      }
      #expect(await bench.run(run) == .stopped)
      #expect(bench.server.objects["copies/film.mp4"]?.size == 0)
      bench.server.script { request in request.operation == .copyObject ? [.ignoreCopySource] : [] }
      let outcome = await bench.run(try await bench.crash(run))
      #expect(outcome.output?.bytes == film.size, "\(outcome)")
      #expect(try bench.bytes(at: .s3) == film.bytes)
    }
  }

  @Test("a version that the URL names is copied, by the store and through the worker", arguments: [true, false])
  func version(byStore: Bool) async throws {
    try await CopyBench.run { bench in
      bench.server.options.hasVersions = true
      try bench.serve(Self.film)
      let version = try #require(bench.server.objects["films/film.mp4"]?.versionID)
      try bench.serve(Self.another)
      let outcome = try await bench.run(
        bench.spec(.s3, .s3) {
          $0.source += "?versionId=\(version)"
          if byStore { $0.parameters = nil }
        })
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      #expect(try bench.bytes(at: .s3) == Self.film.bytes)
      #expect(bench.server.exchanges(.uploadPartCopy).isEmpty != byStore)
    }
  }

  @Test("the current object is not copied as a version by a store that knows none") func noVersions() async throws {
    try await CopyBench.run { bench in
      bench.server.options.ignoresVersions = true
      try bench.serve(Self.film)
      let outcome = try await bench.run(Self.spec(bench) { $0.source += "?versionId=v1" })
      #expect(outcome.failure?.code == .sourceInvalid, "\(outcome)")
      #expect(bench.server.exchanges(.createUpload).isEmpty)
    }
  }

  @Test("a key with any characters is copied by the store") func names() async throws {
    try await CopyBench.run { bench in
      let key = "a b/ü+&=%/.//film?.mp4"
      bench.server.put("films/\(key)", bytes: Self.film.bytes)
      let outcome = try await bench.run(
        Self.spec(bench) { $0.source = "s3://films/a%20b/ü+%26=%25/.//film%3F.mp4" })
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      #expect(try bench.bytes(at: .s3) == Self.film.bytes)
      #expect(bench.server.exchanges(.uploadPartCopy).count == 6)
    }
  }
}

/// What only a source at `s3://` does.
@Suite struct CopyFromS3Tests {
  private static let film = OriginFile(seed: 1, size: 12 << 20)

  @Test("each end has the credential that is named for it") func credentials() async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      let outcome = try await bench.run(
        bench.spec(.s3, .s3) { $0.headers = [HeaderField(name: "x-amz-request-payer", value: "requester")] })
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      #expect(outcome.output?.verified == .crc32c && outcome.output?.remark == nil)
      for exchange in bench.server.exchanges {
        let isSource = exchange.request.key == "films/film.mp4"
        let keys = isSource ? "AKIAONE" : "AKIATWO"
        #expect(exchange.request["authorization"]?.contains("Credential=\(keys)/") == true, "\(exchange.request)")
        #expect((exchange.request["x-amz-request-payer"] != nil) == isSource)
      }
      // Each part is of the version that was seen.
      let reads = bench.server.exchanges(.getObject).dropFirst().map(\.request)
      let etag = try #require(bench.server.objects["films/film.mp4"]?.etag)
      #expect(!reads.isEmpty && reads.allSatisfy { $0["if-match"] == etag })
    }
  }

  @Test("a credential that is for one end only is refused at the other, if the task names both")
  func refusals() async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      for (to, code) in [
        ("none", TaskFailure.Code.credentialUnknown), ("one", .credentialRefused),
      ] {
        let failure = try await bench.run(
          bench.spec(.s3, .web) { $0.parameters = Array(#"{"toCredential":"\#(to)"}"#.utf8) }
        ).failure
        #expect(failure?.code == code)
      }
      // The keys are for the destination, but are named for the source.
      let source = try await bench.run(
        bench.spec(.web, .s3) {
          $0.credential = "one"
          $0.parameters = Array(#"{"toCredential":"two"}"#.utf8)
        }
      ).failure
      #expect(source?.code == .credentialRefused)
      #expect(bench.server.objects.count == 1)
    }
  }

  @Test("a bucket in another region is asked there, by the store and through the worker", arguments: [true, false])
  func region(byStore: Bool) async throws {
    try await CopyBench.run { bench in
      bench.server.options.region = "eu-west-1"
      try bench.serve(Self.film)
      let outcome = try await bench.run(bench.spec(.s3, .s3) { if byStore { $0.parameters = nil } })
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      #expect(try bench.bytes(at: .s3) == Self.film.bytes)
    }
  }

  @Test("answers that fail or do not come are asked for again, and nothing that is for the source goes elsewhere")
  func retries() async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      bench.server.script { request in
        guard request.operation == .getObject else { return [] }
        switch request.ordinal {
        case 1: return [.status(503)]
        case 3: return [.slowDown(times: 1)]
        case 5: return [.closeBeforeReading]
        default: return []
        }
      }
      let outcome = try await bench.run(
        bench.spec(.s3, .web) { $0.headers = [HeaderField(name: "X-Film", value: "one")] })
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      #expect(try bench.bytes(at: .web) == Self.film.bytes)
      // The task's header fields are for the source, and no signature leaves it.
      #expect(bench.server.exchanges(.getObject).allSatisfy { $0.request["x-film"] == "one" })
      let sent = (bench.server.exchanges(.put) + bench.server.exchanges(.head)).map(\.request)
      #expect(!sent.isEmpty && sent.allSatisfy { $0["x-film"] == nil && $0["authorization"] == nil })
    }
  }

  @Test("a store that refuses to give the object is named with its own word") func refused() async throws {
    try await CopyBench.run { bench in
      try bench.serve(Self.film)
      bench.server.always(.getObject, .status(403, body: "<Error><Code>AccessDenied</Code></Error>"))
      let failure = try await bench.run(bench.spec(.s3, .web)).failure
      #expect(failure?.code.rawValue == "s3_access_denied" && failure?.class == .fail)
    }
  }
}
