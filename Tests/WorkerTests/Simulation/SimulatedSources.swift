import TaskCore

/// What the tasks download, of a version that changes now and then: a few blocks each, or so many that a run lasts longer
/// than a lease.
@MainActor final class SimulatedSources {
  /// Bytes of a block.
  nonisolated static let block: Int64 = 1000

  private var versions: [UniqueID: Int] = [:]

  func version(of task: UniqueID) -> Int { versions[task] ?? 1 }

  /// Serves other bytes from now on, as many as before.
  func replace(_ task: UniqueID) { versions[task] = version(of: task) + 1 }

  func blocks(of task: UniqueID) -> Int { isLong(task) ? 20 + Int(task.low % 17) : 2 + Int(task.low % 7) }

  private func isLong(_ task: UniqueID) -> Bool { task.low.isMultiple(of: 3) }

  /// What a response says about the source.
  func identity(of task: UniqueID) -> SourceIdentity {
    SourceIdentity(
      finalURL: "http://origin/\(task)", size: Int64(blocks(of: task)) * Self.block,
      etag: "\"\(version(of: task))\"")
  }

  static func ranges(_ blocks: some Sequence<Int>) -> ByteRanges {
    ByteRanges(blocks.map { Int64($0) * block..<Int64($0 + 1) * block })
  }

  static func blocks(_ ranges: ByteRanges) -> Set<Int> {
    Set(ranges.ranges.flatMap { Int($0.lowerBound / block)..<Int($0.upperBound / block) })
  }
}
