/// How much of a volume's free space one task may use, and how much all leave free: databases and logs may share the
/// volume, and a file system without free space is slow.
package struct ReservePolicy: Hashable, Sendable {
  /// Space that stays free.
  package enum Floor: Hashable, Sendable {
    case bytes(Int64)
    /// Of the volume, 0…99.
    case percent(Int)

    /// In bytes, for a volume of `total` bytes. Zero if its size is needed and unknown.
    package func bytes(of total: Int64?) -> Int64 {
      switch self {
      case .bytes(let bytes): bytes
      case .percent(let percent): (total ?? 0) / 100 * Int64(percent)
      }
    }
  }

  /// Percent of the free space above the floor, 1…100.
  package var share: Int
  package var floor: Floor

  package init(share: Int = 80, floor: Floor = .percent(1)) {
    precondition((1...100).contains(share))
    self.share = share
    self.floor = floor
  }

  /// The largest size, in bytes, that a task's file may have.
  ///
  /// - Parameters:
  ///   - free: the free space that the file system reports.
  ///   - total: the size of the volume, if it is known.
  ///   - promised: the part of it that other tasks' files will still need.
  ///   - held: the bytes that the task's own file already has; they are no longer free.
  package func limit(free: Int64, total: Int64?, promised: Int64, held: Int64) -> Int64 {
    // File systems without an end report the largest numbers.
    let (sum, overflows) = max(0, max(0, free - promised) - floor.bytes(of: total)).addingReportingOverflow(held)
    let available = overflows ? .max : sum
    // In this order a share of an exabyte does not overflow. The few bytes lost to rounding do not matter.
    return share == 100 ? available : available / 100 * Int64(share)
  }
}
