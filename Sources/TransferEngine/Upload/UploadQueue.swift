import ReelhaulSystem
import TaskCore

/// Sends the segments of one upload, some at once: more while all goes well, and fewer where the server complains.
// @unchecked: used only on its loop.
final class UploadQueue: @unchecked Sendable {
  private let order: UploadOrder
  private let session: [UInt8]
  private let target: any UploadTarget
  private let ledger: any UploadLedger
  private let loop: EventLoop
  private let counted: @Sendable (TransferMetrics.PartResult) -> Void
  private var receipts: [Int: UploadReceipt]
  private var partial: [Int: Int64]
  /// Of segments of which the server may have kept more than it said, or less: where they end at most, in the file.
  private var doubted: [Int: Int64] = [:]
  private var missing: [Int]
  /// How many may be sent at once now, and ever.
  private var window: Int
  private let parallel: Int
  /// The bytes per second that the upload may send now; nil for any number.
  private let rate: () -> Int64?
  /// How many connections to the server are its own.
  private let share: () -> Int
  private var done: Int64
  /// Failed requests since the last that was a success.
  private var failures = 0
  /// When a failure has made it slower the last time.
  private var slowedAt = BootInstant.now
  /// Nothing is sent before.
  private var notBefore = BootInstant.now
  private var progressed: () async throws -> Void = {}
  private var isProgressing = false

  static let firstWindow = 4
  /// What is sent at once under a limit takes no longer: a stop costs the segments that are not whole.
  private static let secondsAtOnce: Int64 = 3
  private static let retries = 5

  init(
    _ order: UploadOrder, session: [UInt8], target: any UploadTarget, ledger: any UploadLedger, loop: EventLoop,
    receipts: [Int: UploadReceipt], partial: [Int: Int64], rate: @escaping () -> Int64? = { nil },
    share: @escaping () -> Int = { .max },
    counted: @escaping @Sendable (TransferMetrics.PartResult) -> Void = { _ in }
  ) {
    self.order = order
    self.session = session
    self.target = target
    self.ledger = ledger
    self.loop = loop
    self.counted = counted
    parallel = max(1, order.plan.parallel)
    self.rate = rate
    self.share = share
    self.receipts = receipts
    self.partial = partial
    window = min(parallel, Self.firstWindow)
    // From the end, because the next is taken from there.
    missing = (0..<order.plan.segments(of: order.size)).filter { receipts[$0] == nil }.reversed()
    done = receipts.keys.reduce(0) { $0 + Int64(order.plan.range(of: $1, size: order.size).count) }
    done += partial.values.reduce(0, +)
  }

  /// What the server has of the file.
  var confirmed: ByteRanges {
    var ranges = ByteRanges(receipts.keys.sorted().map { order.plan.range(of: $0, size: order.size) })
    for (number, bytes) in partial {
      let start = order.plan.range(of: number, size: order.size).lowerBound
      ranges.insert(start..<start + bytes)
    }
    return ranges
  }

  /// Returns the receipts of all segments. `progressed` is called when the server has more than before, and never twice at
  /// once.
  func run(_ progressed: @escaping () async throws -> Void) async throws -> [Int: UploadReceipt] {
    self.progressed = progressed
    defer { self.progressed = {} }
    let progress = loop.repeating(every: .milliseconds(250)) { [self] in tell() }
    defer { progress.cancel() }
    tell()
    try await withThrowingTaskGroup(of: (Int, BootInstant, Result<UploadReceipt, any Error>).self) { group in
      var running = 0
      while running > 0 || !missing.isEmpty {
        while running < min(window, affordable, share()), let number = missing.popLast() {
          running += 1
          let begun = max(notBefore, .now)
          group.addTask { [self] in (number, begun, await send(number, at: begun)) }
        }
        guard let (number, begun, result) = try await group.next() else { break }
        running -= 1
        switch result {
        case .success(let receipt):
          counted(.stored)
          let range = order.plan.range(of: number, size: order.size)
          done += Int64(range.count) - (partial.removeValue(forKey: number) ?? 0)
          receipts[number] = receipt
          failures = 0
          window = min(parallel, window + 1)
          try await noteProgress()
        case .failure(let error):
          counted(.failed)
          try await failed(number, begun: begun, error)
          try await noteProgress()
        }
      }
    }
    tell()
    return receipts
  }

  /// How many segments the limit lets pass soon enough.
  private var affordable: Int {
    guard let rate = rate() else { return parallel }
    let (bytes, isMore) = rate.multipliedReportingOverflow(by: Self.secondsAtOnce)
    return isMore ? parallel : Int(max(1, min(Int64(parallel), bytes / max(1, order.plan.segmentSize))))
  }

  private func send(_ number: Int, at instant: BootInstant) async -> Result<UploadReceipt, any Error> {
    do {
      let wait = instant - .now
      if wait > .zero { try await loop.sleep(for: wait) }
      guard ledger.mayWrite else { throw CancellationError() }
      let range = order.plan.range(of: number, size: order.size)
      if let end = doubted[number], try await ask(about: number, range, upTo: end) == range.count {
        return .success(UploadReceipt(segment: number))
      }
      let segment = UploadSegment(
        number: number, range: range, offset: range.lowerBound + (partial[number] ?? 0)
      ) { [self] bytes in
        note(bytes, of: number)
        try await noteProgress()
      }
      return .success(try await target.send(segment, of: order, session: session))
    } catch {
      return .failure(error)
    }
  }

  /// Returns what the server has of a segment. It is asked about this one alone: some servers interrupt the request that is
  /// under way when they are asked about an upload.
  private func ask(about number: Int, _ range: Range<Int64>, upTo end: Int64) async throws -> Int64 {
    guard let kept = try await target.kept(of: number, of: order, session: session) else { throw UploadIncomplete() }
    if range.lowerBound + kept > end {
      throw TaskFailure(
        code: .uploadAhead,
        message: "\(target.location) has more bytes than were sent: somebody else writes to it, or it is wrong",
        class: .fail)
    }
    doubted[number] = nil
    note(kept, of: number)
    return kept
  }

  /// The server has so many bytes of a segment that is not whole.
  private func note(_ bytes: Int64, of number: Int) {
    done += bytes - (partial.updateValue(bytes, forKey: number) ?? 0)
  }

  private func noteProgress() async throws {
    guard !isProgressing else { return }
    isProgressing = true
    defer { isProgressing = false }
    try await progressed()
  }

  /// Puts a segment back that can be sent again soon; throws if the run must end.
  private func failed(_ number: Int, begun: BootInstant, _ error: any Error) async throws {
    try Task.checkCancellation()
    let interrupted = error as? UploadInterrupted
    let error = interrupted?.failure ?? error
    guard let failure = error as? TaskFailure, failure.class == .retry, ledger.mayWrite else { throw error }
    let asked = failure.retryAfter ?? 0
    guard asked <= EventLoop.longestPause else { throw failure }
    // Requests that were under way together fail together: that is one failure.
    if begun >= slowedAt {
      failures += 1
      window = max(1, window / 2)
      guard failures <= Self.retries else { throw failure }
      slowedAt = .now
    }
    notBefore = max(notBefore, .now + max(.seconds(asked), .milliseconds(100 << min(failures, 6))))
    missing.append(number)
    if order.plan.keepsParts { doubted[number] = interrupted?.end ?? doubted[number] ?? .max }
  }

  private func tell() {
    ledger.progress(bytesDone: min(order.size, done + order.body.inFlight), bytesTotal: order.size)
  }
}
