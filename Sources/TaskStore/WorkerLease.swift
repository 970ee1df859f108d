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
  /// How many tasks of a kind may run at once in the fleet, as its handler declares; it holds until a later registration
  /// of the kind, or an operator, says otherwise.
  package var kindLimits: [TaskKind: Int]
  /// Of those of its kinds that are former names: the name that the kind has now. They count as that kind.
  package var formerNames: [TaskKind: TaskKind]
  /// The UUIDs of the storage volumes it can use, by name; ``LeaseStore/announce(_:volumes:)`` tells of later ones.
  package var volumes: [String: UniqueID]
  package var labels: [String: String]

  package init(
    boot: UniqueID, host: String, pid: Int32, leaseSeconds: Int, kinds: [TaskKind], volumes: [String: UniqueID],
    labels: [String: String] = [:], kindLimits: [TaskKind: Int] = [:],
    formerNames: [TaskKind: TaskKind] = [:]
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
  }
}

/// A worker process's number in the store, from its registration on.
package struct WorkerID: Hashable, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }
}

/// The answer to a renewal.
package struct Renewal: Hashable, Sendable {
  /// False: the lease is gone for good. Stop everything and register anew.
  package var isAlive: Bool
  /// What the worker shall do about its running tasks.
  package var intents: [UniqueID: Intent]

  package init(isAlive: Bool, intents: [UniqueID: Intent] = [:]) {
    self.isAlive = isAlive
    self.intents = intents
  }
}
