import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// One storage root, with everything that work on it needs: a loop, connections, threads and the volume.
package struct StorageRoot: Sendable {
  /// The NAME in `storage://NAME/…`.
  package let name: String
  package let storage: Storage
  /// Runs the shells of the transfers.
  package let loop: EventLoop
  package let client: CurlClient
  /// For calls that wait for a device. They are many, because a file system makes durable together what waits together.
  package let files: BlockingPool
  /// For reads of whole files that already exist. They have their own threads, so that transfers do not wait for them.
  package let reads: BlockingPool
  /// For deletions, which may take long: transfers do not wait for them.
  let deletes: BlockingPool
  /// For hashing, which takes a core.
  package let digests: BlockingPool
  /// For copies to this root, by the name of the root that they read: one that does not answer delays no other.
  let copies: [String: BlockingPool]
  /// The credentials that tasks may name.
  package let credentials: CredentialFile?
  /// Whether a task may use the keys of AWS's own files and environment, if it names no credential.
  let usesAWSCredentials: Bool
  /// The connections of all transfers of all roots to each host.
  let hosts: HostConnections
  /// What uploads of all roots hold in memory.
  let held: HeldBytes
  /// What all transfers of all roots keep together.
  let limiter: RateLimiter?
  let metrics: TransferMetrics
  let pace = SyncPace()
  let buffers = BufferStock()

  /// Runs a call on the volume that is mounted at the root when the call gets a thread. Throws ``StorageError`` if no
  /// volume is mounted or the root does not answer, and `CancellationError` after the root was closed.
  package func withVolume<Result: Sendable>(
    _ body: @escaping @Sendable (Volume) throws -> Result
  ) async throws -> Result {
    guard storage.answers(name) else { throw StorageError.silent(name) }
    return try await files.run { [storage, name] in try body(storage.volume(name)) }
  }

  /// Runs a call that may read a whole file. Calls `pulse` every 10 seconds until the call gets a thread. Throws
  /// `CancellationError` if its task is canceled before.
  package func readWhole<Result: Sendable>(
    pulse: @escaping @Sendable () -> Void, _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await run(on: reads, pulse: pulse, body)
  }

  /// Runs a call that copies from the root `origin` to this one.
  func copy<Result: Sendable>(
    from origin: StorageRoot, _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await (copies[origin.name] ?? reads).run(body)
  }

  /// Like ``withVolume(_:)``, for a call that deletes. Calls `pulse` every 10 seconds until the call gets a thread.
  package func delete<Result: Sendable>(
    pulse: (@Sendable () -> Void)? = nil, _ body: @escaping @Sendable (Volume) throws -> Result
  ) async throws -> Result {
    try await run(on: deletes, pulse: pulse) { [storage, name] in try body(storage.volume(name)) }
  }

  private func run<Result: Sendable>(
    on threads: BlockingPool, pulse: (@Sendable () -> Void)?,
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    let waiting = pulse.map { loop.repeating(every: .seconds(10), $0) }
    defer { waiting?.cancel() }
    return try await threads.runUnlessCanceled {
      waiting?.cancel()
      return try body()
    }
  }

  /// Ends all transfers that still run and frees the connections and threads. Blocks until the threads have ended.
  func close() async {
    await client.close()
    files.shutdown()
    reads.shutdown()
    for threads in copies.values { threads.shutdown() }
    deletes.shutdown()
    digests.shutdown()
    loop.shutdown()
  }
}
