/// The answer to a renewal.
package struct Renewal: Hashable, Sendable {
  /// False: the lease is gone for good. Stop everything and register anew.
  package var isAlive: Bool
  package var intents: [Intent]

  package init(isAlive: Bool, intents: [Intent]) {
    self.isAlive = isAlive
    self.intents = intents
  }
}
