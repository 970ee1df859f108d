import Glibc
import MemoryTaskStore
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// A handler of copies with two storages, an origin and a store, and the runs that the test gives it.
final class CopyBench: Sendable {
  struct Run: Sendable {
    var claim: Claim
    var ledger: RunLedger
  }

  /// What is copied: in the storage `default`, and at the origin.
  static let path = "/film.mp4"
  static let source = "storage://default/film.mp4"
  static let object = "s3://films/film.mp4"

  let origin: OriginServer
  let server: StoreServer
  let handler: CopyHandler
  let storage: Storage
  /// What the runs see of the store of tasks.
  let front: TestStore
  let directory: TemporaryDirectory
  /// The file of the worker's credentials: `one` and `two` are keys for the store.
  let credentials: String
  private let store = MemoryStore()
  private let other: TemporaryDirectory
  private let roots: StorageRoots
  private let loop = EventLoop(name: "copy-test")
  private let boots = Lock(UInt64(0))

  private init() throws {
    origin = try OriginServer()
    server = try StoreServer()
    front = TestStore(store)
    directory = try TemporaryDirectory()
    // Another file system, where there is one.
    other = try TemporaryDirectory(
      prefix: access("/dev/shm", W_OK) == 0 ? "../../../../dev/shm/reelhaul-copy" : "reelhaul-copy")
    storage = Storage(roots: ["default": "\(directory.path)/root", "other": "\(other.path)/root"])
    try storage.initialise()
    credentials = "\(directory.path)/credentials.json"
    server.options.accessKeys = ["AKIAONE", "AKIATWO"]
    let (one, two) = (Self.keys(of: server.url(), "AKIAONE"), Self.keys(of: server.url(), "AKIATWO"))
    try Self.write(Array(#"{"one": \#(one), "two": \#(two)}"#.utf8), to: credentials)
    roots = StorageRoots(
      storage, loop: loop,
      settings: .init(
        permits: { _ in true }, credentials: CredentialFile(path: credentials),
        caFile: try TestCertificates.shared.get().authority))
    handler = CopyHandler(roots: roots)
  }

  /// The JSON of a credential for a store.
  static func keys(of endpoint: String, _ accessKey: String, secret: String = "secret") -> String {
    """
    {"s3": {"accessKeyId": "\(accessKey)", "secretAccessKey": "\(secret)", "endpoint": "\(endpoint)"}, "allowHTTP": true}
    """
  }

  static func run(_ body: (CopyBench) async throws -> Void) async throws {
    let bench = try CopyBench()
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(bench))
    } catch {
      result = .failure(error)
    }
    await bench.roots.close()
    await Task.detached { [loop = bench.loop] in loop.shutdown() }.value
    bench.origin.close()
    bench.server.close()
    try result.get()
  }

  // MARK: Places

  func source(_ place: CopyPlace) -> String {
    switch place {
    case .web: origin.url(Self.path)
    case .s3: Self.object
    case .storage, .tus: Self.source
    }
  }

  func destination(_ place: CopyPlace) -> String {
    switch place {
    case .web: server.url("/put/film.mp4")
    case .tus: "tus+\(server.url("/tus/"))"
    case .s3: "s3://copies/film.mp4"
    case .storage: "storage://other/out/film.mp4"
    }
  }

  /// Puts `file` at all sources.
  func serve(_ file: OriginFile) throws {
    origin.serve(Self.path, file)
    server.put("films/film.mp4", file.content, size: file.size)
    try write(file.content.bytes(0..<file.size), to: "\(directory.path)/root/film.mp4")
  }

  func write(_ bytes: [UInt8], to path: String) throws { try Self.write(bytes, to: path) }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    let file = try FileDescriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
    try bytes.withUnsafeBytes { try file.write($0, at: 0) }
  }

  func make(_ bytes: [UInt8], at place: CopyPlace) throws {
    guard place == .storage else {
      _ = server.put(place == .s3 ? "copies/film.mp4" : "put/film.mp4", bytes: bytes)
      return
    }
    _ = mkdir("\(other.path)/root/out", 0o755)
    try write(bytes, to: "\(other.path)/root/out/film.mp4")
  }

  /// What is at the destination; nil if nothing is.
  func bytes(at place: CopyPlace) throws -> [UInt8]? {
    switch place {
    case .web: return server.objects["put/film.mp4"]?.bytes
    case .s3: return server.objects["copies/film.mp4"]?.bytes
    case .tus: return server.objects.first { $0.key.hasPrefix("tus/") }?.value.bytes
    case .storage:
      guard access("\(other.path)/root/out/film.mp4", F_OK) == 0 else { return nil }
      return try FileDescriptor.open("\(other.path)/root/out/film.mp4", O_RDONLY).contents()
    }
  }

  /// Staging files and unfinished uploads.
  var leftOver: [String] {
    get throws { try storage.volume("other").staged().map(\.name.description) + server.uploads.keys }
  }

  func stagingPath(_ name: String) -> String { "\(other.path)/root/.reelhaul/staging/\(name)" }

  func spec(
    _ from: CopyPlace, _ to: CopyPlace, _ change: (inout TaskSpec) -> Void = { _ in }
  ) -> TaskSpec {
    var spec = TaskSpec(id: .random(), kind: .copy, source: source(from), destination: destination(to))
    if from == .s3 || to == .s3 { spec.credential = "one" }
    var parameters = UploadParameters()
    if to == .tus { parameters.partSize = 256 << 10 }
    if to == .s3 { parameters.partSize = 5 << 20 }
    // The store does not copy between two credentials, though it could.
    if from == .s3, to == .s3 { parameters.toCredential = "two" }
    spec.parameters = parameters.json
    change(&spec)
    return spec
  }

  // MARK: Runs

  func claim(_ spec: TaskSpec) async throws -> Run {
    _ = try await store.apply([.submit(spec)])
    return try await nextRun()
  }

  private func nextRun() async throws -> Run {
    let boot = boots.withLock { boots in
      boots += 1
      return boots
    }
    let worker = try await store.register(
      WorkerRegistration(
        boot: UniqueID(high: 1, low: boot), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.copy],
        volumes: storage.volumes))
    let claim = try #require(try await store.claim(worker, limit: 1, call: 1).first)
    let lease = Lease(
      worker: worker, boot: UniqueID(high: 1, low: boot), fence: Fence(until: .now + .seconds(3600)))
    let batcher = StoreBatcher(store: front, loop: loop, log: quietLog)
    return Run(claim: claim, ledger: RunLedger(claim: claim, lease: lease, store: batcher))
  }

  /// The worker of a run ends before it can settle the run. Another worker then owns the task.
  func crash(_ run: Run) async throws -> Run {
    store.expireLease(of: run.ledger.lease.worker)
    _ = try await store.sweep()
    store.makeDue(run.claim.spec.id)
    return try await nextRun()
  }

  func run(_ run: Run) async -> RunOutcome { await handler.run(run.claim, ledger: run.ledger) }

  func run(_ spec: TaskSpec) async throws -> RunOutcome { await run(try await claim(spec)) }

  /// Runs it until `moment`, and then cancels it, or ends its right to write before, as if its worker had died.
  func interrupt(_ run: Run, kills: Bool, when moment: () async throws -> Void) async throws {
    let task = Task { await self.run(run) }
    try await moment()
    if kills { run.ledger.disown() }
    task.cancel()
    let outcome = await task.value
    #expect(outcome == .stopped)
  }

  func cleanUp(_ run: Run) async throws {
    let cleanup = Cleanup(id: 1, spec: run.claim.spec, checkpoint: run.claim.checkpoint, files: false, attempt: 1)
    try await handler.cleanUp(cleanup)
  }
}

enum CopyPlace: CaseIterable, Sendable {
  case web, tus, s3, storage

  static let pairs: [(CopyPlace, CopyPlace)] = [CopyPlace.web, .s3, .storage].flatMap { from in
    CopyPlace.allCases.map { (from, $0) }
  }
}

extension RunOutcome {
  var failure: TaskFailure? { if case .failed(let failure) = self { failure } else { nil } }

  var output: UploadOutput? {
    guard case .succeeded(_, _, let json?) = self else { return nil }
    return try? UploadOutput(json: json)
  }
}

extension OriginFile {
  var bytes: [UInt8] { content.bytes(0..<size) }
}
