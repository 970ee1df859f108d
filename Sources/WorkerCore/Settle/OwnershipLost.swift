/// The task belongs to another worker now, or to none. Code that catches this error stops and writes nothing more for
/// it.
package struct OwnershipLost: Error, Hashable, Sendable {
  package init() {}
}
