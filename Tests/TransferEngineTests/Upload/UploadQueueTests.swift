import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// How many segments are sent at once.
@Suite struct UploadQueueTests {
  /// A target that fails as it is told, and counts what runs at once.
  private final class Target: UploadTarget {
    struct State {
      var running = 0
      /// How many run at each beginning.
      var widths: [Int] = []
      var sent: [Int] = []
      var begun: [BootInstant] = []
    }

    let state = Lock(State())
    private let fails: @Sendable (_ call: Int) -> Bool
    private let retryAfter: Int?
    private let loop: EventLoop

    init(loop: EventLoop, retryAfter: Int?, fails: @escaping @Sendable (_ call: Int) -> Bool) {
      self.loop = loop
      self.retryAfter = retryAfter
      self.fails = fails
    }

    let location = "test://place"
    let server = "place:80"
    func plan(size: Int64) async throws -> UploadPlan { UploadPlan(segmentSize: 1, parallel: 16) }
    func look(_ upload: UploadOrder) async throws -> UploadedObject? { nil }
    func proves(_ there: inout UploadedObject, _ upload: UploadOrder) async throws -> Bool { false }
    func begin(_ upload: UploadOrder) async throws -> [UInt8] { [] }
    func resume(_ upload: UploadOrder, session: [UInt8]) async throws -> UploadStanding {
      .open([:])
    }
    func forget(_ plan: UploadPlan, since milliseconds: Int64) async throws {}
    func finish(_ upload: UploadOrder, session: [UInt8], receipts: [UploadReceipt]) async throws -> UploadedObject {
      UploadedObject()
    }
    func abort(session: [UInt8]) async throws -> Bool { false }

    func send(_ segment: UploadSegment, of upload: UploadOrder, session: [UInt8]) async throws -> UploadReceipt {
      let call = state.withLock { state in
        state.running += 1
        state.widths.append(state.running)
        state.begun.append(.now)
        return state.widths.count
      }
      defer { state.withLock { $0.running -= 1 } }
      try await loop.sleep(for: .milliseconds(20))
      if fails(call) {
        throw TaskFailure(code: .http(503), message: "slow down", class: .retry, retryAfter: retryAfter)
      }
      state.withLock { $0.sent.append(segment.number) }
      return UploadReceipt(segment: segment.number)
    }
  }

  private struct Source: UploadSource {
    let identity = UploadIdentity(size: 200, version: "1")
    func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8> {
      ArraySlice(repeating: 0, count: range.count)
    }
    func check() async throws {}
  }

  /// Sends 200 segments.
  private func run(
    rate: Int64? = nil, share: @escaping @Sendable (_ calls: Int) -> Int = { _ in .max }, retryAfter: Int? = nil,
    _ fails: @escaping @Sendable (_ call: Int) -> Bool
  ) async throws -> Target.State {
    let loop = EventLoop(name: "upload-queue-test")
    defer { loop.shutdown() }
    let target = Target(loop: loop, retryAfter: retryAfter, fails: fails)
    let count = try await loop.task {
      let ledger = UploadRecordingLedger()
      let throttle = Throttle(rate: nil, limiter: nil, loop: loop)
      defer { throttle.close() }
      let order = UploadOrder(
        task: .random(), generation: 0, size: 200, plan: UploadPlan(segmentSize: 1, parallel: 16), ifExists: .fail,
        sha256: nil, mayBeThere: false,
        body: UploadBodies(source: Source(), throttle: throttle, loop: loop) { true }, record: { _ in },
        publishing: { _ in })
      let queue = UploadQueue(
        order, session: [], target: target, ledger: ledger, loop: loop, receipts: [:], partial: [:], rate: { rate },
        share: { share(target.state.withLock { $0.widths.count }) })
      return try await queue.run {}.count
    }.value
    #expect(count == 200)
    return target.state.withLock { $0 }
  }

  @Test("more is sent at once while all goes well") func grows() async throws {
    let state = try await run { _ in false }
    #expect(state.widths.first == 1 && state.widths.max() == 16)
    #expect(state.sent.sorted() == Array(0..<200))
  }

  @Test("under a limit no more is sent at once than passes in three seconds", arguments: [(1, 3), (4, 12), (.max, 16)])
  func limited(rate: Int64, most: Int) async throws {
    let state = try await run(rate: rate) { _ in false }
    #expect(state.widths.max() == most && state.sent.count == 200)
  }

  @Test("no more is sent at once than the server's connections that are the upload's own") func shared() async throws {
    let state = try await run(share: { $0 < 100 ? 3 : 8 }, { _ in false })
    #expect(state.widths.prefix(100).max() == 3 && state.widths.max() == 8 && state.sent.count == 200)
  }

  @Test("a burst of failures halves what is sent at once, once, and it recovers") func burst() async throws {
    // All that run at once at the full width fail.
    let state = try await run { (61...76).contains($0) }
    #expect(state.sent.sorted() == Array(0..<200))
    let after = state.widths.dropFirst(76)
    #expect(after.prefix(8).allSatisfy { $0 <= 9 }, "\(after)")
    #expect(after.max() == 16)
  }

  @Test("a server that names a time is asked nothing before it") func namedTime() async throws {
    let state = try await run(retryAfter: 1) { $0 == 21 }
    #expect(state.sent.sorted() == Array(0..<200))
    let pauses = zip(state.begun, state.begun.dropFirst()).map { $0.duration(to: $1) }
    #expect(pauses.max() ?? .zero >= .milliseconds(900), "\(pauses.max() ?? .zero)")
  }

  @Test("failures that never end end the attempt") func never() async throws {
    await #expect(throws: TaskFailure.self) { _ = try await run { $0 > 20 } }
  }
}
