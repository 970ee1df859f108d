import TaskCore

/// The chunk plan of one download of known size: which connection fetches which bytes.
///
/// Pure: the shell reports the bytes that arrived and asks for more work. No byte belongs to two running chunks at the
/// same time, and no byte is lost. Chunks are taken from the front, so that the hash can follow the contiguous prefix.
/// Their length adapts to the bytes that a connection moves in about three seconds. At the end, an idle connection
/// takes over half of the rest of a slow one.
package struct ChunkScheduler: Sendable {
  package struct Limits: Hashable, Sendable {
    /// The shortest planned chunk, in bytes. The last chunk of a range, and shares of a small rest, may be shorter.
    var shortest: Int64 = 4 << 20
    var longest: Int64 = 64 << 20
    /// How long a chunk should take, in milliseconds: short, so that the hash can follow closely, but many times the delay of
    /// an answer, which each chunk costs.
    var milliseconds: ClosedRange<Int64> = 1000...3000
    var delays: Int64 = 20
    /// Near the end, and of a running chunk that is split, no part is shorter than what a connection moves in this time …
    var partMilliseconds: Int64 = 250
    /// … within these bounds: a request costs a round trip.
    var shortestPart: Int64 = 64 << 10
    var longestPart: Int64 = 8 << 20
    /// What a part has at least while no connection's rate is known.
    var unknownPart: Int64 = 1 << 20
    /// A running chunk is split only if its connection needs longer than this for the rest. All connections then end within
    /// this time of each other, and little is sent twice of what was on its way.
    var tailMilliseconds: Int64 = 500
    /// Chunks begin and end at multiples of this, except next to gaps.
    var grain: Int64 = 64 << 10
    /// While others wait for a connection, a connection whose rate is limited is given back after about this time.
    var turnMilliseconds: Int64 = 8000

    /// The bytes that a connection moves in its turn, if its rate is limited to `rate` bytes per second.
    func turn(at rate: Int64) -> Int64 {
      let bytes = min(max(min(rate, longest) * turnMilliseconds / 1000, shortestPart), longest)
      return (bytes + grain - 1) / grain * grain
    }
  }

  struct Chunk: Hashable, Sendable {
    let id: Int
    /// The bytes to fetch.
    let range: Range<Int64>
  }

  /// Work for a connection that asked for it.
  struct Grant: Hashable, Sendable {
    let chunk: Chunk
    /// The running chunk that now ends earlier, because the new chunk is its second half. Its connection must accept no
    /// byte from the new end on.
    let shortened: Chunk?
  }

  private struct Running {
    /// The chunk's bytes below this offset have arrived.
    var position: Int64
    var range: Range<Int64>
    /// Bytes per second, as measured.
    var pace: Int64?

    var left: Int64 { range.upperBound - position }
  }

  let size: Int64
  let limits: Limits
  /// Milliseconds from a request to the first byte of its answer, of late.
  var delay: Int64?
  /// The bytes that have arrived, those done before included.
  private(set) var received: ByteRanges
  /// The bytes that are neither received nor part of a running chunk.
  private var free: ByteRanges
  private var running: [Int: Running] = [:]
  private var nextID = 0

  init(size: Int64, done: ByteRanges = ByteRanges(), limits: Limits = Limits()) {
    self.size = size
    self.limits = limits
    received = done.intersection(ByteRanges(0..<max(0, size)))
    free = received.missing(in: 0..<max(0, size))
  }

  var isComplete: Bool { received.count == size }

  /// The running chunks, in the order in which they began.
  var runningChunks: [Chunk] {
    running.sorted { $0.key < $1.key }.map { Chunk(id: $0.key, range: $0.value.range) }
  }

  /// Returns work for one more connection, or `nil` if no rest is worth a connection.
  ///
  /// - Parameters:
  ///   - connections: The number of connections that share the rest, this one included.
  ///   - rate: The measured bytes per second of one connection; `nil` at first.
  ///   - turn: The bytes of a connection's turn, if others wait for it: a chunk has at most twice as many.
  mutating func next(connections: Int, rate: Int64?, turn: Int64? = nil) -> Grant? {
    if let gap = free.ranges.first {
      let length = length(in: gap, connections: connections, rate: rate, turn: turn)
      let range = gap.lowerBound..<(gap.lowerBound + length)
      free.remove(range)
      return Grant(chunk: start(range), shortened: nil)
    }
    return split(rate: rate)
  }

  /// Where the running chunk ends.
  func end(of id: Int) -> Int64? { running[id]?.range.upperBound }

  /// The chunk's connection moves so many bytes per second.
  mutating func measured(_ id: Int, pace: Int64) {
    running[id]?.pace = pace
  }

  /// Milliseconds that the chunk's connection still needs; `nil` where its pace is not known.
  func timeLeft(of id: Int) -> Int64? {
    guard let chunk = running[id], let pace = chunk.pace else { return nil }
    return milliseconds(for: chunk.left, at: pace)
  }

  /// Milliseconds that a new connection would need for the rest of the chunk.
  func timeLeft(of id: Int, anewAt rate: Int64) -> Int64? {
    running[id].map { min(milliseconds(for: $0.left, at: rate), 1 << 50) + min(delay ?? 0, 1 << 20) }
  }

  /// Reports that the chunk's bytes below `offset` have arrived.
  ///
  /// Ignores a closed chunk, and bytes beyond the chunk's end, because these belong to another chunk.
  mutating func advance(_ id: Int, to offset: Int64) {
    guard var chunk = running[id] else { return }
    let end = min(offset, chunk.range.upperBound)
    guard end > chunk.position else { return }
    received.insert(chunk.position..<end)
    chunk.position = end
    running[id] = chunk
  }

  /// Ends a chunk earlier, because its connection will not deliver the bytes from `offset` on. They are free for others.
  /// Returns whether there are such bytes.
  @discardableResult mutating func release(_ id: Int, from offset: Int64) -> Bool {
    guard var chunk = running[id], chunk.position <= offset, offset < chunk.range.upperBound else { return false }
    free.insert(offset..<chunk.range.upperBound)
    chunk.range = chunk.range.lowerBound..<offset
    running[id] = chunk
    return true
  }

  /// Ends a chunk, because its connection has finished or failed. The bytes that have not arrived are free for other
  /// connections.
  mutating func close(_ id: Int) {
    guard let chunk = running.removeValue(forKey: id) else { return }
    free.insert(chunk.position..<chunk.range.upperBound)
  }

  // MARK: Decisions

  private mutating func start(_ range: Range<Int64>) -> Chunk {
    defer { nextID += 1 }
    running[nextID] = Running(position: range.lowerBound, range: range)
    return Chunk(id: nextID, range: range)
  }

  private func length(in gap: Range<Int64>, connections: Int, rate: Int64?, turn: Int64?) -> Int64 {
    let available = gap.upperBound - gap.lowerBound
    let fitting =
      rate.map { min(max(bytes(in: chunkMilliseconds, at: $0), limits.shortest), limits.longest) }
      ?? limits.shortest
    let adapted = min(fitting, turn ?? .max)
    let part = min(part(at: rate), turn ?? .max)
    let share = max(free.count / Int64(max(1, connections)), part)
    let end = roundUp(gap.lowerBound + min(adapted, share))
    let isRestWorthAConnection = gap.upperBound - end >= part
    return isRestWorthAConnection ? end - gap.lowerBound : min(available, limits.longest + limits.longestPart)
  }

  /// A part of the running chunk that needs the longest, if that is long: each connection gets what it moves until both
  /// end. A chunk whose pace is not known yet is taken to be as fast as others were, and without those to be fast.
  private mutating func split(rate: Int64?) -> Grant? {
    var slowest: (id: Int, chunk: Running, pace: Int64, part: Int64, time: Int64)?
    for (id, chunk) in running {
      let known = chunk.pace ?? rate
      let pace = known ?? .max
      let time = milliseconds(for: chunk.left, at: pace)
      guard time >= limits.tailMilliseconds, chunk.left >= 2 * part(at: known) else { continue }
      if slowest.map({ ($0.time, $0.chunk.left, $0.id) < (time, chunk.left, id) }) ?? true {
        slowest = (id, chunk, pace, part(at: known), time)
      }
    }
    guard let (id, chunk, pace, part, _) = slowest else { return nil }
    let share = Double(max(pace, 1)) / (Double(max(pace, 1)) + Double(max(rate ?? pace, 1)))
    let kept = min(max(Int64(Double(chunk.left) * share), part), chunk.left - part)
    let middle = min(roundUp(chunk.position + kept), chunk.range.upperBound - part)
    running[id]?.range = chunk.range.lowerBound..<middle
    return Grant(
      chunk: start(middle..<chunk.range.upperBound),
      shortened: Chunk(id: id, range: chunk.range.lowerBound..<middle))
  }

  private var chunkMilliseconds: Int64 {
    guard let delay else { return limits.milliseconds.upperBound }
    return min(max(min(delay, 1 << 20) * limits.delays, limits.milliseconds.lowerBound), limits.milliseconds.upperBound)
  }

  private func part(at rate: Int64?) -> Int64 {
    guard let rate else { return limits.unknownPart }
    return min(max(bytes(in: limits.partMilliseconds, at: rate), limits.shortestPart), limits.longestPart)
  }

  private func bytes(in milliseconds: Int64, at rate: Int64) -> Int64 {
    let bytes = rate.multipliedReportingOverflow(by: milliseconds)
    return bytes.overflow ? .max : bytes.partialValue / 1000
  }

  private func milliseconds(for bytes: Int64, at rate: Int64) -> Int64 {
    let product = bytes.multipliedReportingOverflow(by: 1000)
    return product.overflow ? .max : product.partialValue / max(1, rate)
  }

  private func roundUp(_ offset: Int64) -> Int64 {
    (offset + limits.grain - 1) / limits.grain * limits.grain
  }
}
