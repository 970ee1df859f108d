/// The task is another's now, or nobody's: whoever catches this stops and writes nothing more for it.
package struct OwnershipLost: Error, Hashable, Sendable {
  package init() {}
}
