import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// The storage roots of this process, each with everything that work on it needs. The process makes them once and
/// passes them to the engine or handler of every kind of task.
///
/// Every root has its own threads. So a root whose file system does not answer delays no work on another root.
package final class StorageRoots: Sendable {
  /// What the transfers of all roots share.
  package struct Settings: Sendable {
    /// Decides for every resolved address whether a connection to it is allowed.
    package var permits: CurlOptions.AddressPredicate
    /// The credentials that tasks may name.
    package var credentials: CredentialFile?
    /// Whether tasks that name no credential use the keys of AWS's own files and environment.
    package var awsCredentials: Bool
    /// Bytes per second for all transfers together; `nil` for no limit.
    package var rate: Int64?
    /// Connections to one host, of all transfers together.
    package var hostConnections: Int
    /// A PEM file in the place of the system's certificates.
    package var caFile: String?

    package static let standardHostConnections = 16

    package init(
      permits: @escaping CurlOptions.AddressPredicate, credentials: CredentialFile? = nil, rate: Int64? = nil,
      hostConnections: Int = standardHostConnections, caFile: String? = nil, awsCredentials: Bool = false
    ) {
      self.permits = permits
      self.credentials = credentials
      self.rate = rate
      self.hostConnections = hostConnections
      self.caFile = caFile
      self.awsCredentials = awsCredentials
    }
  }

  /// The directories of the roots and the volumes that are mounted there.
  package let storage: Storage
  private let roots: [String: StorageRoot]
  /// The loop, connections and threads of work that touches no storage, which no root holds up; without a name or a volume.
  package let remote: StorageRoot
  let metrics = TransferMetrics()
  let hosts: HostConnections

  /// - Parameter loop: Runs the timer of the rate limit. ``close()`` does not end it.
  package init(_ storage: Storage, loop: EventLoop, settings: Settings) {
    self.storage = storage
    let limiter = settings.rate.map { RateLimiter(rate: $0, loop: loop) }
    let hosts = HostConnections(limit: settings.hostConnections)
    self.hosts = hosts
    let held = HeldBytes(hasSeveralRoots: storage.roots.count > 1)
    let metrics = metrics
    let curl = CurlOptions(permits: settings.permits, caFile: settings.caFile)
    let make = { (name: String, word: String, sources: [String]) in
      let loop = EventLoop(name: "engine-\(word)")
      return StorageRoot(
        name: name, storage: storage, loop: loop, client: CurlClient(loop: loop, options: curl),
        files: BlockingPool(name: "files-\(word)", threads: 32),
        reads: BlockingPool(name: "reads-\(word)", threads: 4),
        deletes: BlockingPool(name: "deletes-\(word)", threads: 4),
        digests: BlockingPool(name: "digests-\(word)", threads: 2),
        copies: Dictionary(
          uniqueKeysWithValues: sources.map {
            ($0, BlockingPool(name: "copies-\($0)-\(word)", threads: 4))
          }), credentials: settings.credentials,
        usesAWSCredentials: settings.awsCredentials, hosts: hosts, held: held,
        limiter: limiter, metrics: metrics)
    }
    let names = Array(storage.roots.keys)
    roots = Dictionary(uniqueKeysWithValues: names.map { ($0, make($0, $0, names)) })
    remote = make("", "remote", [])
  }

  /// `nil` if no root has this name. Report ``StorageError/unknownRoot(_:)`` then.
  package subscript(name: String) -> StorageRoot? { roots[name] }

  /// Ends the transfers that still run and frees the connections and threads. Blocks until the threads have ended.
  package func close() async {
    for root in roots.values { await root.close() }
    await remote.close()
  }
}
