import TaskCore

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
