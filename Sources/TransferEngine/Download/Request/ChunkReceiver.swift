import ReelhaulCurl
import ReelhaulDigest
import ReelhaulSystem
import TaskCore

/// Receives one answer for a ``Download``: asks it what to do with the body, gathers the bytes and writes them, or only
/// hashes them to compare them with those of an earlier answer.
// @unchecked: used only on the download's loop.
final class ChunkReceiver: FetchReceiver, @unchecked Sendable {
  let id: Int
  /// How many bytes of the body are written or hashed.
  private(set) var received: Int64 = 0
  /// A limit or the disk makes it wait.
  private(set) var isPaused = false
  /// With those that are gathered, and not written yet.
  var arrived: Int64 { received + Int64(filled) }
  private unowned let download: Download
  private var target: Target?
  /// There is one only while it holds bytes: a transfer that waits for a limit has none.
  private var buffer: UnsafeMutableRawBufferPointer?
  private var capacity = 0
  private var filled = 0
  private var flushedAt = Clocks.boottime()
  /// When the body began.
  private var begunAt: Int64 = 0
  /// How many bytes are wanted, if another request fetches the rest.
  private var wanted: Int64?
  private var comparison: Comparison?

  private struct Target {
    var file: StagedFile
    /// The offset in the file of the next write.
    var next: Int64
    /// How many bytes may still come; `nil` if the length is unknown.
    var left: Int64?
  }

  private struct Comparison: ~Copyable {
    var digest = DigestState(.sha256)
    var left: Int64
  }

  /// - Parameter id: The id of the request in ``DownloadMachine``.
  init(_ id: Int, of download: Download) {
    self.id = id
    self.download = download
  }

  deinit {
    buffer?.deallocate()
  }

  func receive(_ answer: SourceAnswer, from place: Place) -> Reception {
    let reception = download.received(answer, from: place, of: id)
    if case .compare(let count) = reception { comparison = Comparison(left: count) }
    guard case .write(let offset, let count) = reception else { return reception }
    guard let file = download.staged else { return .refuse }
    target = Target(file: file, next: offset, left: count)
    if let wanted { shorten(to: wanted) }
    // A limit lets bytes pass in portions, and takes the buffer back after each: it may have the size of a portion.
    let least = download.throttle.isLimited ? BufferStock.size : 0
    capacity = Int(max(1, min(count ?? .max, Int64(max(download.bufferSize, least)))))
    begunAt = Clocks.boottime()
    return reception
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    if comparison != nil { return compare(body, of: transfer) }
    guard let target else { return .abort }
    if target.file.opening.isClosed, filled + body.count > capacity {
      target.file.opening.whenOpen { transfer.resume() }
      return .pause
    }
    if let left = target.left, left < Int64(body.count) || wanted != nil && left == Int64(body.count) {
      // If the request was shortened, another one fetches the rest, and this one ends here. Otherwise the body is
      // longer than announced, so it is not the requested chunk.
      if wanted != nil {
        download.metrics.moved(body.count - Int(left), .download, download.scheme)
        download.metrics.wasted(Int64(body.count) - left, .steal)
        _ = gather(UnsafeRawBufferPointer(rebasing: body.prefix(Int(left))))
      }
      return .abort
    }
    let mustWait =
      download.staging.mustWaitForRecord(target.file, then: { transfer.resume() })
      || download.throttle.holdsBack(body.count, of: transfer)
    if noting(mustWait) { return rest() }
    download.arrived()
    return gather(body) ? .continue : .abort
  }

  /// Pauses the transfer. What it has gathered is written now, so that it needs no buffer while it waits.
  private func rest() -> CurlVerdict {
    guard let target, !target.file.opening.isClosed else { return .pause }
    guard flush() else { return .abort }
    if capacity <= BufferStock.size { release() }
    return .pause
  }

  private func release() {
    if let buffer { download.root.buffers.giveBack(buffer) }
    buffer = nil
  }

  /// Notes whether a limit or the disk makes it wait, or that it is alive.
  private func noting(_ mustWait: Bool) -> Bool {
    isPaused = mustWait
    if mustWait { download.heldBack() } else { download.ledger.pulse() }
    return mustWait
  }

  private func compare(_ body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    guard let left = comparison?.left, left >= Int64(body.count), download.mayWrite() else { return .abort }
    if noting(download.throttle.holdsBack(body.count, of: transfer)) { return .pause }
    comparison?.digest.update(body)
    comparison?.left -= Int64(body.count)
    received += Int64(body.count)
    download.metrics.moved(body.count, .download, download.scheme)
    return .continue
  }

  /// The SHA-256 of a body that was compared; `nil` for any other, and when it was asked before.
  func comparedDigest() -> [UInt8]? {
    guard comparison != nil else { return nil }
    defer { comparison = nil }
    return comparison?.digest.finish()
  }

  /// Keeps only the response's first `count` bytes from now on.
  func shorten(to count: Int64) {
    wanted = count
    // Another request fetches what is gathered behind it.
    filled = min(filled, Int(max(0, count - received)))
    target?.left = max(0, count - received - Int64(filled))
  }

  private func gather(_ body: UnsafeRawBufferPointer) -> Bool {
    guard let target else { return false }
    let buffer = buffer ?? download.root.buffers.take(capacity)
    self.buffer = buffer
    self.target?.left = target.left.map { $0 - Int64(body.count) }
    var rest = body[...]
    while !rest.isEmpty {
      if filled == buffer.count, !flush() { return false }
      let count = min(rest.count, buffer.count - filled)
      UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<filled + count])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
      filled += count
      rest = rest.dropFirst(count)
    }
    guard filled == buffer.count, !target.file.opening.isClosed else { return true }
    guard flush() else { return false }
    grow()
    return true
  }

  /// Takes a larger buffer where more flows than was known. Not in the first moments: many servers begin with a burst.
  private func grow() {
    let elapsed = flushedAt - begunAt
    guard elapsed >= download.options.bufferTime.nanoseconds else { return }
    let rate = Int64(Double(received) / (Double(elapsed) / 1e9))
    let size = Int(min(Int64(download.bufferSize(at: rate)), target?.left ?? .max))
    guard size >= 2 * capacity else { return }
    release()
    capacity = size
  }

  /// Writes the gathered bytes. Returns false if no more can be written; the download then knows the reason.
  private func flush() -> Bool {
    guard filled > 0, let target, let buffer else { return true }
    guard download.mayWrite() else { return false }
    do throws(StorageError) {
      try target.file.write(UnsafeRawBufferPointer(rebasing: buffer[..<filled]), at: target.next)
    } catch {
      download.stagingFailed(download.staging.failure(for: error))
      return false
    }
    self.target?.next += Int64(filled)
    received += Int64(filled)
    flushedAt = Clocks.boottime()
    download.wrote(filled, to: target.file, by: self)
    filled = 0
    return true
  }

  /// Writes the gathered bytes if the last write was before `time`: a slow connection takes minutes to fill the buffer.
  func flush(before time: Int64) {
    guard flushedAt < time, let target, !target.file.opening.isClosed else { return }
    guard flush(), let wanted, received >= wanted else { return }
    // Its connection may stand still for long.
    download.hasEnough(id)
  }

  /// The response has ended, whole or not: writes the rest. It may have to wait until the staging file is open.
  func finish() async {
    guard let target, filled > 0 else { return }
    await target.file.opening.opened()
    if flush() { release() }
  }
}
