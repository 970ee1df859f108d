import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// A store, a storage root with a file, and an engine that may reach loopback.
final class UploadHarness: Sendable {
  let store: StoreServer
  let engine: UploadEngine
  let directory: TemporaryDirectory
  let roots: StorageRoots
  private let loop: EventLoop

  static let source = "storage://default/in/film.mp4"

  private init(_ options: StoreOptions, _ account: S3Account?, hostConnections: Int, caFile: String?) throws {
    store = try StoreServer(receiveBuffer: 64 << 10, options: options)
    directory = try TemporaryDirectory()
    let credentials = "\(directory.path)/credentials.json"
    let used = account ?? store.account
    try used.writeCredentials(to: credentials)
    // Another test's store may have had this port.
    S3Conditions.known.withLock { $0["\(used.endpoint)/films"] = nil }
    let root = "\(directory.path)/root"
    let storage = Storage(roots: ["default": root])
    try storage.initialise()
    guard mkdir("\(root)/in", 0o755) == 0 else { throw SystemError.last("mkdir") }
    let loop = EventLoop(name: "upload-test")
    self.loop = loop
    roots = StorageRoots(
      storage, loop: loop,
      settings: .init(
        permits: { NetworkPolicy.loopback.permits(sockaddr: $0) }, credentials: CredentialFile(path: credentials),
        hostConnections: hostConnections, caFile: caFile))
    engine = UploadEngine(roots: roots)
  }

  /// - Parameter account: what the credential `s3` is for; nil for the harness's own store.
  static func run(
    options: StoreOptions = StoreOptions(), account: S3Account? = nil,
    hostConnections: Int = StorageRoots.Settings.standardHostConnections, trustsTestAuthority: Bool = false,
    _ body: (UploadHarness) async throws -> Void
  ) async throws {
    let authority = trustsTestAuthority ? try TestCertificates.shared.get().authority : nil
    let harness = try UploadHarness(options, account, hostConnections: hostConnections, caFile: authority)
    do {
      try await body(harness)
    } catch {
      await harness.close()
      throw error
    }
    await harness.close()
  }

  private func close() async {
    await roots.close()
    loop.shutdown()
    store.close()
  }

  /// The credential `s3` has this session token from now on.
  func renew(token: String) throws {
    var account = store.account
    account.sessionToken = token
    try use(account)
  }

  /// The credential `s3` is for this store from now on.
  func use(_ account: S3Account) throws {
    try account.writeCredentials(to: "\(directory.path)/credentials.json")
    // Another test's store may have had this port.
    S3Conditions.known.withLock { $0["\(account.endpoint)/films"] = nil }
  }

  /// Writes the source.
  func put(_ bytes: [UInt8]) throws { try write(bytes, to: sourcePath) }

  var sourcePath: String { "\(directory.path)/root/in/film.mp4" }

  func run(
    _ spec: TaskSpec, from checkpoint: UploadCheckpoint? = nil, ledger: UploadRecordingLedger = UploadRecordingLedger()
  ) async -> UploadOutcome {
    await engine.run(spec, from: checkpoint, ledger: ledger)
  }

  /// Stops a run once the store has got so many bytes of a request, and lets the store go on without faults. Returns what the
  /// run has recorded.
  func interrupt(_ spec: TaskSpec, _ operation: StoreOperation, after bytes: Int64) async -> UploadRecordingLedger {
    let (gate, ledger) = (OriginGate(), UploadRecordingLedger())
    store.always(operation, .holdBody(after: bytes, gate))
    await stop(spec, at: gate, ledger: ledger)
    store.script { _ in [] }
    return ledger
  }

  /// Stops a run once the store has come to the gate, and opens it.
  func stop(
    _ spec: TaskSpec, at gate: OriginGate, ledger: UploadRecordingLedger = UploadRecordingLedger()
  ) async {
    let run = Task { await self.run(spec, ledger: ledger) }
    await gate.reached()
    run.cancel()
    #expect(await run.value == .stopped)
    gate.open()
  }
}

/// Keeps the checkpoints of an upload; `onCheckpoint` may refuse one.
final class UploadRecordingLedger: UploadLedger {
  private struct State {
    var checkpoints: [UploadCheckpoint] = []
    var progress: [Int64] = []
    var mayWrite = true
  }

  let epoch = 1
  let beginsAnew: Bool
  private let state = Lock(State())
  private let onCheckpoint: @Sendable (UploadCheckpoint) async throws -> Void

  init(
    beginsAnew: Bool = false, _ onCheckpoint: @escaping @Sendable (UploadCheckpoint) async throws -> Void = { _ in }
  ) {
    self.beginsAnew = beginsAnew
    self.onCheckpoint = onCheckpoint
  }

  func checkpoint(_ checkpoint: UploadCheckpoint) async throws {
    try await onCheckpoint(checkpoint)
    // What another worker reads is what was written.
    let read = try UploadCheckpoint(checkpoint.envelope)
    #expect(read == checkpoint)
    state.withLock { $0.checkpoints.append(read) }
  }

  func progress(bytesDone: Int64, bytesTotal: Int64?) { state.withLock { $0.progress.append(bytesDone) } }
  func pulse() {}
  var mayWrite: Bool { state.withLock { $0.mayWrite } }
  func revoke() { state.withLock { $0.mayWrite = false } }
  var last: UploadCheckpoint? { state.withLock { $0.checkpoints.last } }
  var progress: [Int64] { state.withLock { $0.progress } }
}

extension UploadOutcome {
  var failure: TaskFailure? { if case .failed(let failure) = self { failure } else { nil } }
  var object: UploadedObject? { if case .succeeded(let object, _) = self { object } else { nil } }
}
