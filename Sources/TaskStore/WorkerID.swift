/// A worker process's number in the store, from its registration on.
package struct WorkerID: Hashable, Sendable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }
}
