import ReelhaulSystem
import TaskCore
import Testing

@testable import TransferEngine

private let mebibyte: Int64 = 1 << 20

struct ChunkSchedulerTests {
  /// Connections move, stall, fail and finish at random.
  @Test(
    "with random connections, every byte arrives and none is assigned twice at a time",
    arguments: 0..<60 as Range<UInt64>)
  func fetchesEveryByteOnce(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let size = Int64.random(in: 0...(400 * mebibyte), using: &generator)
    var done = ByteRanges()
    for _ in 0..<Int.random(in: 0..<5, using: &generator) {
      let lower = Int64.random(in: 0...size, using: &generator)
      done.insert(lower..<Int64.random(in: lower...size, using: &generator))
    }
    var plan = ChunkScheduler(size: size, done: done)
    var positions: [Int: Int64] = [:]
    var bytesMoved: Int64 = 0
    var steps = 0
    while !plan.isComplete, steps < 100_000 {
      steps += 1
      let running = plan.runningChunks
      #expect(zip(running, running.dropFirst()).allSatisfy { $0.id < $1.id })
      let sorted = running.map(\.range).sorted { $0.lowerBound < $1.lowerBound }
      #expect(zip(sorted, sorted.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }, "chunks overlap")
      if Int.random(in: 0..<4, using: &generator) == 0, let chunk = running.randomElement(using: &generator) {
        plan.measured(chunk.id, pace: Int64.random(in: 0...(50 * mebibyte), using: &generator))
      }
      if Int.random(in: 0..<20, using: &generator) == 0 { plan.delay = Int64.random(in: 0...500, using: &generator) }
      let connections = Int.random(in: 1...8, using: &generator)
      if running.count < connections {
        let rate = Bool.random(using: &generator) ? nil : Int64.random(in: 0...(50 * mebibyte), using: &generator)
        if let grant = plan.next(connections: connections, rate: rate) {
          positions[grant.chunk.id] = grant.chunk.range.lowerBound
          #expect(!grant.chunk.range.isEmpty)
          #expect(plan.received.intersection(ByteRanges(grant.chunk.range)).isEmpty, "fetched again")
          if let shortened = grant.shortened {
            #expect(shortened.range.upperBound == grant.chunk.range.lowerBound)
            #expect(positions[shortened.id, default: 0] <= shortened.range.upperBound)
          }
          continue
        }
      }
      guard let chunk = plan.runningChunks.randomElement(using: &generator) else {
        Issue.record("nothing runs and nothing is granted")
        return
      }
      switch Int.random(in: 0..<20, using: &generator) {
      case 0...1:
        plan.close(chunk.id)
      case 2:
        // The server sends less than the chunk.
        let end = Int64.random(in: positions[chunk.id, default: 0] + 1...size, using: &generator)
        plan.release(chunk.id, from: end)
        #expect(plan.runningChunks.first { $0.id == chunk.id }?.range.upperBound == min(end, chunk.range.upperBound))
      default:
        let from = positions[chunk.id, default: 0]
        let to = min(chunk.range.upperBound, from + Int64.random(in: 1...(6 * mebibyte), using: &generator))
        bytesMoved += to - from
        positions[chunk.id] = to
        plan.advance(chunk.id, to: to)
        if to == chunk.range.upperBound { plan.close(chunk.id) }
      }
    }
    #expect(plan.isComplete)
    #expect(bytesMoved == size - done.count)
  }

  @Test("the length of a chunk follows the rate, within its limits")
  func chunksFollowTheRate() {
    func length(rate: Int64?) -> Int64? {
      var plan = ChunkScheduler(size: 10_000 * mebibyte)
      return plan.next(connections: 4, rate: rate).map { Int64($0.chunk.range.count) }
    }
    #expect(length(rate: nil) == 4 * mebibyte)
    #expect(length(rate: 1000) == 4 * mebibyte)
    #expect(length(rate: 10 * mebibyte) == 30 * mebibyte)
    #expect(length(rate: .max) == 64 * mebibyte)
  }

  @Test("a chunk takes one second where answers begin at once, and up to three where they take their time")
  func chunksFollowTheDelay() {
    func length(delay: Int64?) -> Int64? {
      var plan = ChunkScheduler(size: 10_000 * mebibyte)
      plan.delay = delay
      return plan.next(connections: 4, rate: 10 * mebibyte).map { Int64($0.chunk.range.count) }
    }
    #expect(length(delay: nil) == 30 * mebibyte)
    #expect(length(delay: 0) == 10 * mebibyte)
    #expect(length(delay: 100) == 20 * mebibyte)
    #expect(length(delay: .max) == 30 * mebibyte)
  }

  @Test("while others wait, a chunk takes about eight seconds at the limited rate, and the last one at most twice that")
  func chunksFollowTheTurn() throws {
    let limits = ChunkScheduler.Limits()
    #expect(limits.turn(at: 1000) == 64 << 10)
    #expect(limits.turn(at: 20_000) == 192 << 10)
    #expect(limits.turn(at: 100 << 10) == 832 << 10)
    #expect(limits.turn(at: .max) == 64 * mebibyte)
    for rate in [nil, 20_000] as [Int64?] {
      var plan = ChunkScheduler(size: 5 * mebibyte)
      var lengths: [Int] = []
      while let chunk = plan.next(connections: 1, rate: rate, turn: limits.turn(at: 20_000))?.chunk {
        lengths.append(chunk.range.count)
        plan.advance(chunk.id, to: chunk.range.upperBound)
        plan.close(chunk.id)
      }
      #expect(plan.isComplete)
      #expect(lengths.dropLast().allSatisfy { $0 == 192 << 10 })
      #expect(lengths.last ?? 0 <= 384 << 10)
    }
  }

  @Test("connections of different speeds end within half a second of each other", arguments: 0..<40 as Range<UInt64>)
  func connectionsEndTogether(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let paces = (0..<Int.random(in: 2...16, using: &generator)).map { _ in
      Int64.random(in: (mebibyte / 2)...(16 * mebibyte), using: &generator)
    }
    var plan = ChunkScheduler(size: Int64.random(in: (20 * mebibyte)...(600 * mebibyte), using: &generator))
    plan.delay = Int64.random(in: 0...200, using: &generator)
    let mean = paces.reduce(0, +) / Int64(paces.count)
    var chunks: [(id: Int, position: Int64)?] = paces.map { _ in nil }
    var idleSince: [Int64?] = paces.map { _ in nil }
    var (clock, requests): (Int64, Int) = (0, 0)
    while !plan.isComplete, clock < 10_000_000 {
      for (index, pace) in paces.enumerated() {
        if chunks[index] == nil, let grant = plan.next(connections: paces.count, rate: mean) {
          chunks[index] = (grant.chunk.id, grant.chunk.range.lowerBound)
          idleSince[index] = nil
          requests += 1
        }
        guard let chunk = chunks[index] else {
          idleSince[index] = idleSince[index] ?? clock
          continue
        }
        chunks[index]?.position += pace / 100
        plan.advance(chunk.id, to: chunk.position + pace / 100)
        plan.measured(chunk.id, pace: pace)
        if plan.timeLeft(of: chunk.id) == 0 {
          plan.close(chunk.id)
          chunks[index] = nil
        }
      }
      clock += 10
    }
    #expect(plan.isComplete)
    let idle = idleSince.compactMap { $0.map { clock - $0 } }.max() ?? 0
    #expect(idle <= 600, "\(paces): one connection idled for \(idle) ms of \(clock)")
    // Not many requests of no length.
    #expect(requests <= Int(clock) * paces.count / 1000 + 12 * paces.count, "\(requests) requests in \(clock) ms")
  }

  @Test("connections share a small file, but not a tiny one")
  func aSmallFileIsSharedAndATinyOneIsNot() {
    var small = ChunkScheduler(size: 8 * mebibyte)
    let lengths = (0..<4).compactMap { _ in small.next(connections: 4, rate: 8 * mebibyte)?.chunk.range.count }
    #expect(lengths.count == 4)
    var tiny = ChunkScheduler(size: 70_000)
    let grants = (0..<2).map { _ in tiny.next(connections: 8, rate: nil)?.chunk.range }
    #expect(grants == [0..<70_000, nil])
  }

  @Test("an idle connection takes over half of what a slow one has left")
  func anIdleConnectionTakesHalfOfWhatASlowOneHasLeft() throws {
    var plan = ChunkScheduler(size: 16 * mebibyte)
    let granted = plan.next(connections: 1, rate: 100 * mebibyte)
    let whole = try #require(granted)
    #expect(whole.chunk.range == 0..<(16 * mebibyte))
    plan.advance(whole.chunk.id, to: 8 * mebibyte)
    let second = plan.next(connections: 2, rate: mebibyte)
    let half = try #require(second)
    #expect(half.chunk.range == (12 * mebibyte)..<(16 * mebibyte))
    #expect(half.shortened?.range == 0..<(12 * mebibyte))
    // Bytes beyond the new end belong to the other chunk.
    plan.advance(whole.chunk.id, to: 16 * mebibyte)
    #expect(plan.received == ByteRanges(0..<(12 * mebibyte)))
  }

  /// Otherwise bytes that the source has already sent of the second half would be sent again.
  @Test("a chunk that is nearly done stays with its connection")
  func aChunkThatIsSoonDoneIsLeftToItsConnection() throws {
    var plan = ChunkScheduler(size: 16 * mebibyte)
    let granted = plan.next(connections: 1, rate: 100 * mebibyte)
    let chunk = try #require(granted).chunk
    func takesOver(rate: Int64?) -> Bool {
      var next = plan
      return next.next(connections: 2, rate: rate) != nil
    }
    #expect(!takesOver(rate: nil), "nothing is known of any connection")
    #expect(!takesOver(rate: 33 * mebibyte) && takesOver(rate: 31 * mebibyte))
    // Its own rate counts once it has been measured.
    plan.advance(chunk.id, to: 9 * mebibyte)
    plan.measured(chunk.id, pace: 15 * mebibyte)
    #expect(!takesOver(rate: mebibyte), "seven left at fifteen a second")
    plan.measured(chunk.id, pace: 0)
    #expect(takesOver(rate: 100 * mebibyte), "it stands still")
  }

  @Test("a failed chunk is assigned again from where it stopped")
  func aFailedChunkIsHandedOutAgainFromWhereItStopped() throws {
    var plan = ChunkScheduler(size: 100 * mebibyte)
    let granted = plan.next(connections: 2, rate: nil)
    let first = try #require(granted).chunk
    plan.advance(first.id, to: mebibyte)
    plan.close(first.id)
    plan.advance(first.id, to: 2 * mebibyte)
    #expect(plan.received == ByteRanges(0..<mebibyte))
    let again = plan.next(connections: 2, rate: nil)
    #expect(again?.chunk.range.lowerBound == mebibyte)
  }

  @Test("an empty file is complete at once")
  func anEmptyFileIsComplete() {
    var plan = ChunkScheduler(size: 0)
    #expect(plan.isComplete)
    let grant = plan.next(connections: 4, rate: nil)
    #expect(grant == nil)
  }
}
