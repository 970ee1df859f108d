/// How much of a volume's free space one task may use.
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
  ///   - free: the free space that the file system reports.
  ///   - promised: the part of it that other tasks' files will still need.
  ///   - held: the bytes that the task's own file already has; they are no longer free.
  package func limit(free: Int64, promised: Int64, held: Int64) -> Int64 {
    let available = max(0, free - promised) + held
    // In this order a share of an exabyte does not overflow. The few bytes lost to rounding do not matter.
    return share == 100 ? available : available / 100 * Int64(share)
  }
}
