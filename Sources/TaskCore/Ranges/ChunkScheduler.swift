/// The chunk plan of one download of known size: which connection fetches which bytes.
///
/// Pure: the shell says what arrived and asks for more; no byte is handed out twice at a time and none is lost. Chunks
/// are taken from the front, so that the hash can follow the contiguous prefix; their length adapts to what a connection
/// moves in about three seconds; at the end idle connections take over half of what a slow one has left.
public struct ChunkScheduler: Sendable {
  public struct Limits: Hashable, Sendable {
    /// Bytes of the shortest chunk that is planned; the last of a range, and shares of a small rest, may be shorter.
    public var shortest: Int64 = 4 << 20
    public var longest: Int64 = 64 << 20
    /// What a chunk should take, in seconds.
    public var seconds: Int64 = 3
    /// A running chunk is split only where both halves have as many bytes.
    public var shortestPart: Int64 = 1 << 20
    /// And only where its connection needs longer, in seconds, for what it has left: of a second half that would soon be
    /// here, much is on its way already and would be sent again.
    public var tailSeconds: Int64 = 1
    /// Chunks begin and end at multiples of this, gaps apart.
    public var grain: Int64 = 256 << 10

    public init() {}
  }

  public struct Chunk: Hashable, Sendable {
    public let id: Int
    /// The bytes to fetch.
    public let range: Range<Int64>
  }

  /// An answer to a connection that asks for work.
  public struct Grant: Hashable, Sendable {
    public let chunk: Chunk
    /// The running chunk that ends earlier now, because the new one is its second half: its connection must take no
    /// byte from the new end on.
    public let shortened: Chunk?
  }

  private struct Running {
    /// Bytes below it have arrived.
    var position: Int64
    var range: Range<Int64>
    /// Where it was when a second began, and how far it came in the last whole one.
    var mark: Int64?
    var pace: Int64?

    var left: Int64 { range.upperBound - position }
  }

  public let size: Int64
  public let limits: Limits
  /// The bytes that have arrived, those done before included.
  public private(set) var received: ByteRanges
  /// Neither received nor handed out.
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

  /// The chunks that connections are at, in the order they were handed out.
  public var runningChunks: [Chunk] {
    running.sorted { $0.key < $1.key }.map { Chunk(id: $0.key, range: $0.value.range) }
  }

  /// Work for one more connection, or `nil` where there is none worth a connection.
  ///
  /// - Parameters:
  ///   - connections: how many there are to share what is left, this one included.
  ///   - rate: bytes per second of one connection, as observed; `nil` at first.
  public mutating func next(connections: Int, rate: Int64?) -> Grant? {
    if let gap = free.ranges.first {
      let length = length(in: gap, connections: connections, rate: rate)
      let range = gap.lowerBound..<(gap.lowerBound + length)
      free.remove(range)
      return Grant(chunk: start(range), shortened: nil)
    }
    return split(rate: rate)
  }

  /// A second has passed since the last call: what has arrived in it tells how fast each connection is.
  public mutating func sampled() {
    for (id, chunk) in running {
      running[id]?.pace = chunk.mark.map { chunk.position - $0 }
      running[id]?.mark = chunk.position
    }
  }

  /// Bytes of the chunk below `offset` have arrived.
  ///
  /// Ignored for a chunk that is closed; what lies beyond the chunk's end belongs to another one and does not count.
  public mutating func advance(_ id: Int, to offset: Int64) {
    guard var chunk = running[id] else { return }
    let end = min(offset, chunk.range.upperBound)
    guard end > chunk.position else { return }
    received.insert(chunk.position..<end)
    chunk.position = end
    running[id] = chunk
  }

  /// The chunk's connection is done with it, or has failed: what has not arrived goes to the next that asks.
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

  /// The second half of what the chunk has to do that has the most left, of those that are slow. One whose pace is not
  /// known yet is taken to be as fast as others were, and without those to be fast.
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
