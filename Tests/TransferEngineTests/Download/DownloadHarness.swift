import Glibc
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// An origin, a storage root, and an engine that may reach loopback. Chunks are small, so that small files are fetched
/// like large ones.
final class DownloadHarness: Sendable {
  let origin: OriginServer
  let storage: Storage
  let engine: DownloadEngine
  let roots: StorageRoots
  let directory: TemporaryDirectory
  private let loop: EventLoop

  static let path = "/film.mp4"
  static let destination = "storage://default/in/film.mp4"

  private init(
    policy: NetworkPolicy, credentials: CredentialFile?, roots: [String: String], options: HarnessOptions
  ) throws {
    origin = try OriginServer()
    directory = try TemporaryDirectory()
    storage = Storage(roots: roots.merging(["default": directory.path]) { $1 })
    try storage.initialise()
    loop = EventLoop(name: "engine-test")
    self.roots = StorageRoots(
      storage, loop: loop,
      settings: .init(
        permits: { policy.permits(sockaddr: $0) }, credentials: credentials, rate: options.rate,
        hostConnections: options.hostConnections, caFile: options.caFile)
    )
    engine = DownloadEngine(roots: self.roots, options: options.download)
  }

  static func run<Result>(
    policy: NetworkPolicy = .loopback, credentials: CredentialFile? = nil, roots: [String: String] = [:],
    trustsTestAuthority: Bool = false, _ change: (inout HarnessOptions) -> Void = { _ in },
    _ body: (DownloadHarness) async throws -> Result
  ) async throws -> Result {
    var options = HarnessOptions()
    if trustsTestAuthority { options.caFile = try TestCertificates.shared.get().authority }
    options.limits.firstChunk = 128 << 10
    options.limits.chunks.shortest = 128 << 10
    options.limits.chunks.longest = 256 << 10
    options.limits.chunks.shortestPart = 32 << 10
    options.limits.chunks.longestPart = 32 << 10
    options.limits.chunks.unknownPart = 32 << 10
    options.limits.chunks.grain = 16 << 10
    options.limits.retryMilliseconds = 2
    options.limits.sealAbove = 256 << 10
    options.writeBuffer = 32 << 10
    // Long enough for answers that a test holds back on a busy machine.
    options.lowSpeed = .init(bytesPerSecond: 512, seconds: 30)
    change(&options)
    let harness = try DownloadHarness(policy: policy, credentials: credentials, roots: roots, options: options)
    do {
      let result = try await body(harness)
      await harness.close()
      return result
    } catch {
      await harness.close()
      throw error
    }
  }

  private func close() async {
    await roots.close()
    loop.shutdown()
    origin.close()
  }

  func spec(_ path: String = path, _ change: (inout TaskSpec) -> Void = { _ in }) -> TaskSpec {
    var spec = TaskSpec(
      id: .random(), kind: .download, source: origin.url(path),
      destination: Self.destination)
    change(&spec)
    return spec
  }

  func run(
    _ spec: TaskSpec, from checkpoint: DownloadCheckpoint? = nil, ledger: RecordingLedger = RecordingLedger()
  ) async -> DownloadOutcome {
    await engine.run(spec, from: checkpoint, ledger: ledger)
  }

  /// The published file, or `nil`.
  var published: [UInt8]? {
    get throws {
      do throws(SystemError) {
        return try FileDescriptor.open("\(directory.path)/in/film.mp4", O_RDONLY).contents()
      } catch {
        if error.errno == ENOENT { return nil }
        throw error
      }
    }
  }

  var stagedNames: [String] {
    get throws { try storage.volume("default").staged().map(\.name.description) }
  }

  /// Runs a download whose worker dies once it has recorded that it publishes: that checkpoint.
  func diedPublishing(_ spec: TaskSpec) async throws -> DownloadCheckpoint {
    let recorded = Lock<DownloadCheckpoint?>(nil)
    let ledger = RecordingLedger { checkpoint in
      guard checkpoint.publishing != nil else { return }
      recorded.withLock { $0 = checkpoint }
      throw RecordingLedger.Refused()
    }
    #expect(await run(spec, ledger: ledger).failure?.code == .checkpointFailed)
    return try #require(recorded.withLock { $0 })
  }

  /// Runs a download, cancels it when an answer is held at `gate` and `written` bytes are written, and returns the
  /// recorded checkpoint.
  func interrupted(_ spec: TaskSpec, at gate: OriginGate, written: Int64) async throws -> DownloadCheckpoint? {
    let ledger = RecordingLedger()
    let task = Task { await run(spec, ledger: ledger) }
    await gate.reached()
    // Bytes that were sent before the gate may not have been received yet.
    try await eventually("\(written) bytes are written") { ledger.progress.last ?? 0 >= written }
    task.cancel()
    let outcome = await task.value
    #expect(outcome == .stopped)
    return ledger.last
  }
}

/// The options of a download and of the roots, side by side.
@dynamicMemberLookup struct HarnessOptions {
  var download = DownloadOptions()
  var rate: Int64?
  var hostConnections = 16
  var caFile: String?

  subscript<Value>(dynamicMember path: WritableKeyPath<DownloadOptions, Value>) -> Value {
    get { download[keyPath: path] }
    set { download[keyPath: path] = newValue }
  }
}

extension NetworkPolicy {
  /// The networks that a local fleet allows.
  static let loopback = NetworkPolicy(allowed: [CIDR(constant: "127.0.0.0/8"), CIDR(constant: "::1")])
}

/// Writes a whole file.
func write(_ bytes: [UInt8], to path: String, mode: mode_t = 0o600) throws {
  let file = try FileDescriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: mode)
  try bytes.withUnsafeBytes { try file.write($0, at: 0) }
}

extension OriginFile {
  var bytes: [UInt8] { content.bytes(0..<size) }
  var sha256: [UInt8] { digest(.sha256, of: bytes) }
}

extension DownloadOutcome {
  var failure: TaskFailure? {
    if case .failed(let failure) = self { failure } else { nil }
  }
}
