import ReelhaulSystem
import TaskCore
import Testing

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
      if Int.random(in: 0..<4, using: &generator) == 0 { plan.sampled() }
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
      if Int.random(in: 0..<10, using: &generator) == 0 {
        plan.close(chunk.id)
      } else {
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

  @Test("connections share a small file, but not a tiny one")
  func aSmallFileIsSharedAndATinyOneIsNot() {
    var small = ChunkScheduler(size: 8 * mebibyte)
    let lengths = (0..<4).compactMap { _ in small.next(connections: 4, rate: 100 * mebibyte)?.chunk.range.count }
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
    #expect(!takesOver(rate: 16 * mebibyte) && takesOver(rate: 15 * mebibyte))
    // Its own rate counts once it has been measured for a whole second.
    plan.advance(chunk.id, to: 2 * mebibyte)
    plan.sampled()
    #expect(!takesOver(rate: nil))
    plan.advance(chunk.id, to: 9 * mebibyte)
    plan.sampled()
    #expect(!takesOver(rate: mebibyte), "seven left at seven a second")
    plan.sampled()
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
