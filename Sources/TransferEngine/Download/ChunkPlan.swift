import TaskCore

/// Which bytes of a source of known size are fetched by which request. Pure.
///
/// Chunks are taken from the front, so that the digest can follow; they adapt to the speed, and get smaller towards the
/// end, so that all connections end together.
struct ChunkPlan: Hashable {
  let total: Int64
  /// Written to the staging file.
  private(set) var done: ByteRanges
  private var running: [Int: Range<Int64>] = [:]
  private var size: Int64
  private let limits: DownloadLimits

  init(total: Int64, done: ByteRanges = ByteRanges(), limits: DownloadLimits) {
    self.total = total
    self.done = done
    self.limits = limits
    size = limits.smallestChunk
  }

  var isComplete: Bool { done.count == total }

  /// Gives request `id` the next chunk for one of `connections`; `nil` where all is done or being fetched.
  mutating func take(_ id: Int, connections: Int) -> Range<Int64>? {
    var taken = done
    for range in running.values { taken.insert(range) }
    let lower = taken.ranges.first.map { $0.lowerBound > 0 ? 0 : $0.upperBound } ?? 0
    guard lower < total else { return nil }
    let gapEnd = taken.ranges.first { $0.lowerBound > lower }?.lowerBound ?? total
    let share = (total - taken.count) / Int64(max(1, 2 * connections))
    let count = max(limits.smallestChunk, min(size, share))
    // A rest smaller than half a chunk is not worth a request of its own.
    let end = gapEnd - lower < count + limits.smallestChunk / 2 ? gapEnd : lower + count
    running[id] = lower..<end
    return lower..<end
  }

  /// Gives request `id` the source's first bytes, asked for before the plan was made.
  mutating func assign(_ range: Range<Int64>, to id: Int) {
    running[id] = range
  }

  /// Request `id` has ended with its first `received` bytes written, after so many milliseconds.
  mutating func finish(_ id: Int, received: Int64, milliseconds: Int64) {
    guard let range = running.removeValue(forKey: id) else { return }
    done.insert(range.lowerBound..<min(range.upperBound, range.lowerBound + received))
    guard received == Int64(range.count), milliseconds >= 0 else { return }
    let ideal = received * limits.chunkMilliseconds / max(1, milliseconds)
    size = max(limits.smallestChunk, min(ideal, size * 2, limits.largestChunk))
  }
}
