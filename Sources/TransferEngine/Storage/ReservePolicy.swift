/// How much of a volume's free space one task may take.
package struct ReservePolicy: Hashable, Sendable {
  /// Percent of the free space, 1…100.
  package var share: Int

  package init(share: Int = 80) {
    precondition((1...100).contains(share))
    self.share = share
  }

  /// The largest size, in bytes, that a task's file may have.
  ///
  /// - Parameters:
  ///   - free: what the file system reports as free.
  ///   - promised: of that, what other tasks' files will still fill.
  ///   - held: what the task's own file holds already; that is no longer free, but its own.
  package func limit(free: Int64, promised: Int64, held: Int64) -> Int64 {
    let available = max(0, free - promised) + held
    // In this order a share of an exabyte does not overflow, and a few bytes lost to rounding do not matter.
    return share == 100 ? available : available / 100 * Int64(share)
  }
}
