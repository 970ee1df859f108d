import ReelhaulCurl
import ReelhaulSystem
import Synchronization

/// Makes the bodies of one run's requests: what they have in common are the source, the limits of the rate and the
/// count of what was sent.
// @unchecked: used only on its loop.
package final class UploadBodies: @unchecked Sendable {
  let source: any UploadSource
  fileprivate let loop: EventLoop
  fileprivate let throttle: Throttle
  /// Whether the run still owns its task: no byte is sent otherwise.
  fileprivate let mayWrite: @Sendable () -> Bool
  /// Told of bytes that go to the server.
  fileprivate let moved: @Sendable (Int) -> Void
  private let sent = Atomic<Int64>(0)

  init(
    source: any UploadSource, throttle: Throttle, loop: EventLoop, moved: @escaping @Sendable (Int) -> Void = { _ in },
    mayWrite: @escaping @Sendable () -> Bool
  ) {
    self.source = source
    self.throttle = throttle
    self.loop = loop
    self.moved = moved
    self.mayWrite = mayWrite
  }

  /// Whether a limit holds bytes back.
  var isLimited: Bool { throttle.isLimited }

  /// Bytes that were given to requests which have not ended yet.
  var inFlight: Int64 { sent.load(ordering: .relaxed) }

  fileprivate func count(_ bytes: Int64) { sent.add(bytes, ordering: .relaxed) }

  /// A body that reads the source as it is sent, some blocks ahead.
  ///
  /// - Parameter beforeLast: called before the last block is sent. The server cannot have the whole file earlier.
  func streaming(
    _ range: Range<Int64>, beforeLast: @escaping @Sendable () async throws -> Void = {}
  ) -> UploadBody {
    UploadBody(range, from: self, all: nil, beforeLast: beforeLast, repeating: {})
  }

  /// The body of bytes that are read already, because their checksum must be sent before them.
  ///
  /// - Parameter repeating: called when libcurl sends all of them once more by itself: the answer says nothing of the
  ///   first time.
  func holding(_ bytes: ArraySlice<UInt8>, repeating: @escaping @Sendable () -> Void = {}) -> UploadBody {
    UploadBody(0..<Int64(bytes.count), from: self, all: bytes, beforeLast: {}, repeating: repeating)
  }
}

/// The body of one request.
// @unchecked: used only on its loop.
package final class UploadBody: CurlBody, @unchecked Sendable {
  /// Blocks that are read before they are needed: one, if they are large.
  private var ahead: Int { bodies.source.block > 4 << 20 ? 1 : 2 }

  private let range: Range<Int64>
  private let bodies: UploadBodies
  private let beforeLast: @Sendable () async throws -> Void
  private let repeating: @Sendable () -> Void
  private var all: ArraySlice<UInt8>?
  /// Blocks that are read, and how much of the first is sent.
  private var blocks: [ArraySlice<UInt8>] = []
  private var used = 0
  private var sent: Int64 = 0
  /// Where the next block begins.
  private var next: Int64
  /// Counts the starts and the end: a block that was read before the last of them is not used.
  private var turn = 0
  private var reading: Task<Void, any Error>?
  private var waiting: CurlTransfer?
  /// Why the source could not be read.
  private(set) var failure: (any Error)?

  fileprivate init(
    _ range: Range<Int64>, from bodies: UploadBodies, all: ArraySlice<UInt8>?,
    beforeLast: @escaping @Sendable () async throws -> Void, repeating: @escaping @Sendable () -> Void
  ) {
    self.range = range
    self.bodies = bodies
    self.beforeLast = beforeLast
    self.repeating = repeating
    self.all = all
    next = range.lowerBound
    _ = rewind()
  }

  deinit { bodies.count(-sent) }

  package var size: Int64 { Int64(range.count) }

  /// Whether its request waits for others, which read the source, while it is sent.
  var isRelay: Bool { all == nil && bodies.source.needsConnections }

  /// Whether its request may be sent: an empty body is not read.
  var mayBegin: @Sendable () -> Bool { bodies.mayWrite }

  /// Whether libcurl has got all bytes, so that the server may have them.
  var isSent: Bool { sent == size }

  package func read(into buffer: UnsafeMutableRawBufferPointer, of transfer: CurlTransfer) -> CurlSupply {
    guard failure == nil, bodies.mayWrite() else { return .abort }
    guard let block = blocks.first else {
      guard reading != nil || next < range.upperBound else { return .bytes(0) }
      waiting = transfer
      readAhead()
      return .pause
    }
    let count = min(buffer.count, block.count - used, bodies.throttle.sentAtOnce)
    if bodies.throttle.holdsBack(count, of: transfer) { return .pause }
    block.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[used..<used + count])) }
    used += count
    sent += Int64(count)
    bodies.count(Int64(count))
    bodies.moved(count)
    if used == block.count {
      blocks.removeFirst()
      used = 0
      readAhead()
    }
    return .bytes(count)
  }

  package func rewind() -> Bool {
    if turn > 0, isSent { repeating() }
    stopReading()
    used = 0
    bodies.count(-sent)
    sent = 0
    blocks = all.map { $0.isEmpty ? [] : [$0] } ?? []
    next = all == nil ? range.lowerBound : range.upperBound
    return failure == nil
  }

  /// Its request is over: stops reading, and frees its memory. What it has sent still counts as in flight, as long as it
  /// is there.
  func release() {
    stopReading()
    waiting = nil
    (all, blocks) = (nil, [])
    next = range.upperBound
  }

  private func stopReading() {
    turn += 1
    reading?.cancel()
    reading = nil
  }

  /// A source on another server may be away for a moment, and a body that is cut off may have to be sent anew. The server
  /// that waits for the next bytes has its own patience.
  static let patience = Duration.seconds(20)

  private func readAhead() {
    guard reading == nil, blocks.count < ahead, next < range.upperBound else { return }
    let (turn, block) = (turn, bodies.source.block(at: next, of: range))
    reading = bodies.loop.task { [self] in
      let result: Result<ArraySlice<UInt8>, any Error>
      do {
        let source = bodies.source
        let bytes =
          source.needsConnections
          ? try await bodies.loop.patiently(for: Self.patience, while: bodies.mayWrite) { try await source.read(block) }
          : try await source.read(block)
        if block.upperBound == range.upperBound { try await beforeLast() }
        result = .success(bytes)
      } catch {
        result = .failure(error)
      }
      guard turn == self.turn else { return }
      reading = nil
      switch result {
      case .success(let bytes):
        blocks.append(bytes)
        next = block.upperBound
        readAhead()
      case .failure(let error): failure = error
      }
      waiting?.resume()
      waiting = nil
    }
  }
}
