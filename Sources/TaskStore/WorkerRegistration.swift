import TaskCore

/// What a worker process says about itself when it begins its lease.
package struct WorkerRegistration: Sendable {
  /// A new UUID for every start of a process.
  package var boot: UniqueID
  package var host: String
  package var pid: Int32
  package var leaseSeconds: Int
  /// The kinds of task it has handlers for.
  package var kinds: [TaskKind]
  /// The UUIDs of the storage volumes it can use, by name; ``LeaseStore/announce(_:volumes:)`` tells of later ones.
  package var volumes: [String: UniqueID]
  package var labels: [String: String]

  package init(
    boot: UniqueID, host: String, pid: Int32, leaseSeconds: Int, kinds: [TaskKind], volumes: [String: UniqueID],
    labels: [String: String] = [:]
  ) {
    self.boot = boot
    self.host = host
    self.pid = pid
    self.leaseSeconds = leaseSeconds
    self.kinds = kinds
    self.volumes = volumes
    self.labels = labels
  }
}
