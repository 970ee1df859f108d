/// The chunk plan of one download of known size: which connection fetches which bytes.
///
/// Pure: the shell reports the bytes that arrived and asks for more work. No byte belongs to two running chunks at the
/// same time, and no byte is lost. Chunks are taken from the front, so that the hash can follow the contiguous prefix.
/// Their length adapts to the bytes that a connection moves in about three seconds. At the end, an idle connection
/// takes over half of the rest of a slow one.
public struct ChunkScheduler: Sendable {
  public struct Limits: Hashable, Sendable {
    /// The shortest planned chunk, in bytes. The last chunk of a range, and shares of a small rest, may be shorter.
    public var shortest: Int64 = 4 << 20
    public var longest: Int64 = 64 << 20
    /// How long one chunk should take, in seconds.
    public var seconds: Int64 = 3
    /// A running chunk is split only if both halves have at least this many bytes …
    public var shortestPart: Int64 = 1 << 20
    /// … and only if its connection needs longer than this for the rest, in seconds. Otherwise much of the second half
    /// is on its way already, and would be sent twice.
    public var tailSeconds: Int64 = 1
    /// Chunks begin and end at multiples of this number of bytes, except at the ends of a gap.
    public var grain: Int64 = 256 << 10

    public init() {}
  }

  public struct Chunk: Hashable, Sendable {
    public let id: Int
    /// The bytes to fetch.
    public let range: Range<Int64>
  }

  /// Work for a connection that asked for it.
  public struct Grant: Hashable, Sendable {
    public let chunk: Chunk
    /// The running chunk that now ends earlier, because the new chunk is its second half. Its connection must accept no
    /// byte from the new end on.
    public let shortened: Chunk?
  }

  private struct Running {
    /// The chunk's bytes below this offset have arrived.
    var position: Int64
    var range: Range<Int64>
    /// The position at the last sample.
    var mark: Int64?
    /// The bytes that arrived in the last whole second.
    var pace: Int64?

    var left: Int64 { range.upperBound - position }
  }

  public let size: Int64
  public let limits: Limits
  /// The bytes that have arrived, including those of earlier runs.
  public private(set) var received: ByteRanges
  /// The bytes that are neither received nor part of a running chunk.
  private var free: ByteRanges
  private var running: [Int: Running] = [:]
  private var nextID = 0

  public init(size: Int64, done: ByteRanges = ByteRanges(), limits: Limits = Limits()) {
    self.size = size
    self.limits = limits
    received = done.intersection(ByteRanges(0..<max(0, size)))
    free = received.missing(in: 0..<max(0, size))
  }

  public var isComplete: Bool { received.count == size }

  /// The running chunks, in the order in which they began.
  public var runningChunks: [Chunk] {
    running.sorted { $0.key < $1.key }.map { Chunk(id: $0.key, range: $0.value.range) }
  }

  /// Returns work for one more connection, or `nil` if no rest is worth a connection.
  ///
  /// - Parameters:
  ///   - connections: The number of connections that share the rest, this one included.
  ///   - rate: The measured bytes per second of one connection; `nil` at first.
  public mutating func next(connections: Int, rate: Int64?) -> Grant? {
    if let gap = free.ranges.first {
      let length = length(in: gap, connections: connections, rate: rate)
      let range = gap.lowerBound..<(gap.lowerBound + length)
      free.remove(range)
      return Grant(chunk: start(range), shortened: nil)
    }
    return split(rate: rate)
  }

  /// Call this every second: the bytes that have arrived since the last call show how fast each connection is.
  public mutating func sampled() {
    for (id, chunk) in running {
      running[id]?.pace = chunk.mark.map { chunk.position - $0 }
      running[id]?.mark = chunk.position
    }
  }

  /// Reports that the chunk's bytes below `offset` have arrived.
  ///
  /// Ignores a closed chunk, and bytes beyond the chunk's end, because these belong to another chunk.
  public mutating func advance(_ id: Int, to offset: Int64) {
    guard var chunk = running[id] else { return }
    let end = min(offset, chunk.range.upperBound)
    guard end > chunk.position else { return }
    received.insert(chunk.position..<end)
    chunk.position = end
    running[id] = chunk
  }

  /// Ends a chunk, because its connection has finished or failed. The bytes that have not arrived are free for other
  /// connections.
  public mutating func close(_ id: Int) {
    guard let chunk = running.removeValue(forKey: id) else { return }
    free.insert(chunk.position..<chunk.range.upperBound)
  }

  // MARK: Decisions

  private mutating func start(_ range: Range<Int64>) -> Chunk {
    defer { nextID += 1 }
    running[nextID] = Running(position: range.lowerBound, range: range)
    return Chunk(id: nextID, range: range)
  }

  private func length(in gap: Range<Int64>, connections: Int, rate: Int64?) -> Int64 {
    let available = gap.upperBound - gap.lowerBound
    let adapted =
      rate.map { min(max(bytes(in: limits.seconds, at: $0), limits.shortest), limits.longest) }
      ?? limits.shortest
    let share = max(free.count / Int64(max(1, connections)), limits.shortestPart)
    let end = roundUp(gap.lowerBound + min(adapted, share))
    let isRestWorthAConnection = gap.upperBound - end >= limits.shortestPart
    return isRestWorthAConnection ? end - gap.lowerBound : min(available, limits.longest + limits.shortestPart)
  }

  /// Takes the second half of the rest of the slow chunk that has the longest rest. If the pace of a chunk is not known
  /// yet, it counts as fast as `rate`; without a rate, it counts as fast and is not split.
  private mutating func split(rate: Int64?) -> Grant? {
    let slow = running.filter { _, chunk in
      chunk.left >= 2 * limits.shortestPart
        && chunk.left > bytes(in: limits.tailSeconds, at: chunk.pace ?? rate ?? .max)
    }
    guard let (id, chunk) = slow.max(by: { ($0.value.left, $1.key) < ($1.value.left, $0.key) }) else { return nil }
    let middle = min(roundUp(chunk.position + chunk.left / 2), chunk.range.upperBound - limits.shortestPart)
    running[id]?.range = chunk.range.lowerBound..<middle
    return Grant(
      chunk: start(middle..<chunk.range.upperBound),
      shortened: Chunk(id: id, range: chunk.range.lowerBound..<middle))
  }

  private func bytes(in seconds: Int64, at rate: Int64) -> Int64 {
    let bytes = rate.multipliedReportingOverflow(by: seconds)
    return bytes.overflow ? .max : bytes.partialValue
  }

  private func roundUp(_ offset: Int64) -> Int64 {
    (offset + limits.grain - 1) / limits.grain * limits.grain
  }
}
