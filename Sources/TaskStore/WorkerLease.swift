import TaskCore

/// The description of a worker process when its lease begins.
package struct WorkerRegistration: Sendable {
  /// A new UUID for every start of a process.
  package var boot: UniqueID
  package var host: String
  package var pid: Int32
  package var leaseSeconds: Int
  /// The kinds that it has handlers for.
  package var kinds: [TaskKind]
  /// How many tasks of a kind may run at once in the fleet, as its handler declares. The limit is valid until a later
  /// registration or an operator changes it.
  package var kindLimits: [TaskKind: Int]
  /// Of those of its kinds that are former names: the name that the kind has now. They count as that kind.
  package var formerNames: [TaskKind: TaskKind]
  /// The UUIDs of the storage volumes it can use, by name; ``LeaseStore/announce(_:volumes:)`` tells of later ones.
  package var volumes: [String: UniqueID]
  package var labels: [String: String]
  /// That of its program.
  package var version: String?

  package init(
    boot: UniqueID, host: String, pid: Int32, leaseSeconds: Int, kinds: [TaskKind], volumes: [String: UniqueID],
    labels: [String: String] = [:], kindLimits: [TaskKind: Int] = [:],
    formerNames: [TaskKind: TaskKind] = [:], version: String? = nil
  ) {
    self.boot = boot
    self.host = host
    self.pid = pid
    self.leaseSeconds = leaseSeconds
    self.kinds = kinds
    self.volumes = volumes
    self.labels = labels
    self.kindLimits = kindLimits
    self.formerNames = formerNames
    self.version = version
  }
}

/// The number that the store gives a worker process at its registration.
package struct WorkerID: Hashable, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }
}

/// The answer to a renewal.
package struct Renewal: Hashable, Sendable {
  /// False if the lease is gone for good. Then stop everything and register again.
  package var isAlive: Bool
  /// The intents for the worker's running tasks.
  package var intents: [UniqueID: Intent]
  /// Somebody has asked the worker to end as on SIGTERM.
  package var isDraining: Bool

  package init(isAlive: Bool, intents: [UniqueID: Intent] = [:], isDraining: Bool = false) {
    self.isAlive = isAlive
    self.intents = intents
    self.isDraining = isDraining
  }
}
