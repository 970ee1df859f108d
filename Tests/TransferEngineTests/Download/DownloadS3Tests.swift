import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Downloads from `s3://`.
@Suite struct DownloadS3Tests {
  private static let size: Int64 = 1_000_000

  private struct Bench {
    let harness: DownloadHarness
    let store: StoreServer
    let credentials: String
    let content = OriginContent(seed: 7)

    @discardableResult
    func put(_ key: String = "films/a.mp4", seed: UInt64 = 7) -> StoreObject {
      store.put(key, OriginContent(seed: seed), size: size)
    }

    func spec(_ path: String = "films/a.mp4", _ change: (inout TaskSpec) -> Void = { _ in }) -> TaskSpec {
      harness.spec {
        $0.source = "s3://\(path)"
        $0.credential = "s3"
        change(&$0)
      }
    }

    func isPublished(seed: UInt64 = 7) throws -> Bool {
      try harness.published == OriginContent(seed: seed).bytes(0..<size)
    }
  }

  private func run(_ options: StoreOptions = StoreOptions(), _ body: (Bench) async throws -> Void) async throws {
    let store = try StoreServer(options: options)
    defer { store.close() }
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/credentials.json"
    let json = """
      {"s3": {"s3": {"accessKeyId": "AKIATEST", "secretAccessKey": "secret", "endpoint": "\(store.url())"},
      "allowHTTP": true}}
      """
    try write(Array(json.utf8), to: path)
    try await DownloadHarness.run(credentials: CredentialFile(path: path)) { harness in
      try await body(Bench(harness: harness, store: store, credentials: path))
    }
  }

  @Test("an object is fetched with signed ranges of one version", arguments: ["films/a.mp4", "films/x/../b c+é.mp4"])
  func object(key: String) async throws {
    try await run { bench in
      let etag = bench.put(key).etag
      let outcome = await bench.harness.run(bench.spec(key.split(separator: " ").joined(separator: "%20")))
      #expect(outcome.failure == nil)
      let isWhole = try bench.isPublished()
      #expect(isWhole)
      let gets = bench.store.exchanges(.getObject)
      #expect(gets.count > 1 && gets.allSatisfy { $0.request["authorization"] != nil })
      // The first request learns the entity tag, and the last one asks whether the object is still that one.
      let (ranges, seal) = (gets.dropFirst().dropLast(), gets.last)
      #expect(ranges.allSatisfy { $0.request["if-match"] == etag && $0.request["if-range"] == nil })
      #expect(seal?.request["range"] == "bytes=0-0" && seal?.status == 206)
    }
  }

  @Test("an object that was stored with a coding is downloaded as it was stored") func coded() async throws {
    try await run { bench in
      var object = bench.put()
      object.headers["content-encoding"] = "gzip"
      bench.store.put("films/a.mp4", object)
      #expect(await bench.harness.run(bench.spec()).failure == nil)
      let isWhole = try bench.isPublished()
      #expect(isWhole)
    }
  }

  @Test("a version is fetched although there is a newer one") func version() async throws {
    var options = StoreOptions()
    options.hasVersions = true
    try await run(options) { bench in
      let id = try #require(bench.put().versionID)
      bench.put(seed: 8)
      #expect(await bench.harness.run(bench.spec("films/a.mp4?versionId=\(id)")).failure == nil)
      let isWhole = try bench.isPublished()
      #expect(isWhole)
    }
  }

  @Test("the current object is not taken for a version by a store that knows none") func noVersions() async throws {
    var options = StoreOptions()
    options.ignoresVersions = true
    try await run(options) { bench in
      bench.put()
      let failure = await bench.harness.run(bench.spec("films/a.mp4?versionId=v1")).failure
      #expect(failure?.code == .sourceInvalid && failure?.class == .fail)
      #expect(await bench.harness.run(bench.spec("films/a.mp4?versionId=null")).failure == nil)
    }
  }

  @Test("an object that is replaced meanwhile is fetched anew, never mixed") func replaced() async throws {
    try await run { bench in
      bench.put()
      bench.store.script { [store = bench.store] request in
        if request.operation == .getObject, request.ordinal == 3 {
          store.put("films/a.mp4", OriginContent(seed: 8), size: DownloadS3Tests.size)
        }
        return []
      }
      #expect(await bench.harness.run(bench.spec()).failure == nil)
      let isWhole = try bench.isPublished(seed: 8)
      #expect(isWhole)
    }
  }

  @Test("another run goes on with the bytes that are there, if the object is the same") func resume() async throws {
    try await run { bench in
      bench.put()
      let gate = OriginGate()
      bench.store.script { $0.operation == .getObject && $0.ordinal >= 3 ? [.holdAnswer(gate)] : [] }
      let spec = bench.spec()
      let ledger = RecordingLedger()
      let first = Task { await bench.harness.run(spec, ledger: ledger) }
      try await eventually("a part is written") { ledger.progress.last ?? 0 >= 128 << 10 }
      first.cancel()
      #expect(await first.value == .stopped)
      gate.open()
      bench.store.script { _ in [] }
      let before = bench.store.exchanges.count
      let recorded = ledger.last
      #expect(recorded != nil)
      #expect(await bench.harness.run(spec, from: recorded).failure == nil)
      let isWhole = try bench.isPublished()
      #expect(isWhole)
      let second = bench.store.exchanges[before...]
      // One byte is asked for at the end, to see that the object is still that one.
      #expect(second.last?.request["range"] == "bytes=0-0")
      #expect(
        second.dropLast().allSatisfy {
          $0.request["if-match"] != nil && $0.request["range"]?.hasPrefix("bytes=0-") == false
        })
    }
  }

  @Test("a bucket of another region is asked there") func region() async throws {
    var options = StoreOptions()
    options.region = "eu-west-1"
    try await run(options) { bench in
      bench.put()
      #expect(await bench.harness.run(bench.spec()).failure == nil)
      let isWhole = try bench.isPublished()
      #expect(isWhole)
    }
  }

  @Test("failures after the move to the bucket's region are explained") func failsElsewhere() async throws {
    var options = StoreOptions()
    options.region = "eu-west-1"
    try await run(options) { bench in
      bench.put()
      bench.store.script { request in
        guard request.operation == .getObject, request.ordinal > 4 else { return [] }
        rename(bench.credentials, bench.credentials + ".away")
        return [.expiredToken]
      }
      let failure = await bench.harness.run(bench.spec()).failure
      #expect(failure?.code == .credentialsUnusable && failure?.class == .wait, "\(String(describing: failure))")
    }
  }

  @Test("a store that names the bucket's region without a Location is asked there at once") func noLocation()
    async throws
  {
    var options = StoreOptions()
    options.region = "eu-west-1"
    try await run(options) { bench in
      bench.put()
      bench.store.script { request in
        guard request["authorization"]?.contains("/us-east-1/") == true else { return [] }
        return [.status(301, headers: [("x-amz-bucket-region", "eu-west-1")], body: "")]
      }
      #expect(await bench.harness.run(bench.spec()).failure == nil)
      let isWhole = try bench.isPublished()
      #expect(isWhole)
      // The download asked, and then what its answer means.
      #expect(bench.store.exchanges.count { $0.status == 301 } == 2)
    }
  }

  @Test("a clock that differs by hours is taken from the store") func skew() async throws {
    try await run { bench in
      bench.put()
      bench.store.script { _ in [.clockSkew(seconds: -7200)] }
      #expect(await bench.harness.run(bench.spec()).failure == nil)
      let isWhole = try bench.isPublished()
      #expect(isWhole)
      #expect(bench.store.exchanges.map(\.status).count { $0 == 403 } == 1)
    }
  }

  @Test("keys that end while no others can be had make the download wait, and it then goes on")
  func keysEnd() async throws {
    try await run { bench in
      bench.put()
      bench.store.script { request in
        guard request.operation == .getObject, request.ordinal == 3 else { return [] }
        rename(bench.credentials, bench.credentials + ".away")
        return [.expiredToken]
      }
      let (spec, ledger) = (bench.spec(), RecordingLedger())
      let failure = await bench.harness.run(spec, ledger: ledger).failure
      #expect(failure?.code == .credentialsUnusable && failure?.class == .wait, "\(String(describing: failure))")
      bench.store.options.accessKeys = ["AKIANEW"]
      let keys = try FileDescriptor.open(bench.credentials + ".away", O_RDONLY).contents()
      let text = String(decoding: keys, as: UTF8.self).split(separator: "AKIATEST").joined(separator: "AKIANEW")
      try write(Array(text.utf8), to: bench.credentials)
      #expect(await bench.harness.run(spec, from: ledger.last).failure == nil)
      let isWhole = try bench.isPublished()
      #expect(isWhole)
    }
  }

  @Test("failures have the codes of S3") func failures() async throws {
    try await run { bench in
      let missing = await bench.harness.run(bench.spec()).failure
      #expect(missing?.code.rawValue == "s3_no_such_key" && missing?.class == .fail)
      bench.put()
      bench.store.options.accessKeys = ["AKIAOTHER"]
      let denied = await bench.harness.run(bench.spec()).failure
      #expect(denied?.code.rawValue == "s3_invalid_access_key_id" && denied?.class == .fail)
      #expect(denied?.message.contains("s3://films/a.mp4") == true)
    }
  }

  @Test("a source in S3 needs a credential for it") func noCredential() async throws {
    try await run { bench in
      bench.put()
      let none = await bench.harness.run(bench.spec { $0.credential = nil }).failure
      #expect(none?.code == .credentialNeeded)
      let unknown = await bench.harness.run(bench.spec { $0.credential = "other" }).failure
      #expect(unknown?.code == .credentialUnknown && unknown?.class == .wait)
      #expect(bench.store.exchanges.isEmpty)
    }
  }

  @Test("a redirect to another server gets no signature") func redirect() async throws {
    try await run { bench in
      bench.put()
      let other = try StoreServer()
      defer { other.close() }
      bench.store.always(.getObject, .redirect(to: other.url("/films/a.mp4")))
      _ = await bench.harness.run(bench.spec())
      #expect(!other.exchanges.isEmpty)
      #expect(other.exchanges.allSatisfy { $0.request["authorization"] == nil })
    }
  }
}
