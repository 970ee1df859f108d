import Glibc
import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// A handler that may reach loopback, and a store that speaks every protocol.
final class RemoteDeleteBench: Sendable {
  let server: StoreServer
  private let handler: DeleteHandler
  let roots: StorageRoots
  private let loop = EventLoop(name: "delete-test")
  private let directory: TemporaryDirectory
  private let credentials: String
  private let store = MemoryStore()

  private init(hasRoot: Bool, hostConnections: Int) throws {
    server = try StoreServer()
    directory = try TemporaryDirectory()
    let storage = Storage(roots: hasRoot ? ["default": directory.path] : [:])
    try storage.initialise()
    let path = "\(directory.path)/../\(UniqueID.random()).json"
    credentials = path
    try Self.write(bearer: "a", for: server, to: path)
    roots = StorageRoots(
      storage, loop: loop,
      settings: .init(
        permits: { _ in true }, credentials: CredentialFile(path: path), hostConnections: hostConnections))
    handler = DeleteHandler(roots: roots)
  }

  private static func write(bearer token: String, for server: StoreServer, to path: String) throws {
    let json = """
      {"s3": {"s3": {"accessKeyId": "AKIATEST", "secretAccessKey": "secret", "endpoint": "\(server.url())"},
      "allowHTTP": true}, "web": {"hosts": ["127.0.0.1:\(server.port)"], "bearer": "\(token)", "allowHTTP": true}}
      """
    try FileDescriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600).write(json, at: 0)
  }

  /// The credential `web` has this token from now on.
  func renew(bearer token: String) throws { try Self.write(bearer: token, for: server, to: credentials) }

  static func run(
    hasRoot: Bool = true, hostConnections: Int = StorageRoots.Settings.standardHostConnections,
    _ body: (RemoteDeleteBench) async throws -> Void
  ) async throws {
    let bench = try RemoteDeleteBench(hasRoot: hasRoot, hostConnections: hostConnections)
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(bench))
    } catch {
      result = .failure(error)
    }
    bench.server.close()
    unlink(bench.credentials)
    await bench.roots.close()
    await Task.detached { [loop = bench.loop] in loop.shutdown() }.value
    try result.get()
  }

  /// Deletes objects of the store.
  func deleteS3(
    _ path: String, recursively: Bool = false, _ change: (inout TaskSpec) -> Void = { _ in }
  ) async -> RunOutcome {
    await delete("") { spec in
      spec.source = "s3://\(path)"
      spec.credential = "s3"
      if recursively { spec.parameters = Array(#"{"recursive":true}"#.utf8) }
      change(&spec)
    }
  }

  func delete(
    _ path: String, scheme: String = "", _ change: (inout TaskSpec) -> Void = { _ in },
    ledger prepare: (RunLedger) -> Void = { _ in }
  ) async -> RunOutcome {
    var spec = TaskSpec(id: .random(), kind: .delete, source: scheme + server.url(path))
    change(&spec)
    do {
      _ = try await store.apply([.submit(spec)])
      let boot = UniqueID.random()
      let worker = try await store.register(
        WorkerRegistration(boot: boot, host: "test", pid: 1, leaseSeconds: 3600, kinds: [.delete], volumes: [:]))
      let claim = try #require(try await store.claim(worker, limit: 1, call: 1).first)
      let lease = Lease(worker: worker, boot: boot, fence: Fence(until: .now + .seconds(3600)))
      let ledger = RunLedger(claim: claim, lease: lease, store: StoreBatcher(store: store, loop: loop, log: quietLog))
      prepare(ledger)
      return await handler.run(claim, ledger: ledger)
    } catch {
      Issue.record(error)
      return .stopped
    }
  }
}

extension RunOutcome {
  /// Of a deletion that found nothing.
  static var absent: RunOutcome { .output(0, #"{"files":0,"bytes":0,"absent":true}"#) }

  static func output(_ bytes: Int64, _ json: String) -> RunOutcome {
    .succeeded(sha256: nil, bytes: bytes, output: Array(json.utf8))
  }
}
