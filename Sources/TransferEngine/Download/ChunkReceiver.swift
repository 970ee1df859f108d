import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// Receives one response for a ``Download``: asks what becomes of the body, gathers it, and writes it to its place.
// @unchecked: touched on the download's loop alone.
final class ChunkReceiver: CurlHandler, @unchecked Sendable {
  let request: DownloadMachine.Request
  let startedAt: Int64
  /// Bytes of the body that are written.
  private(set) var received: Int64 = 0
  private unowned let download: Download
  private var destination = Destination.none
  private var buffer: UnsafeMutableRawBufferPointer?
  private var filled = 0
  private var flushedAt: Int64
  /// The bytes wanted, where that is fewer than the response has.
  private var wanted: Int64?

  private enum Destination {
    case none
    /// `left` is `nil` where the length is unknown.
    case file(StagedFile, next: Int64, left: Int64?)
    /// Read and thrown away, up to so many bytes.
    case nowhere(left: Int)
  }

  init(_ request: DownloadMachine.Request, of download: Download) {
    self.request = request
    self.download = download
    startedAt = Clocks.boottime()
    flushedAt = startedAt
  }

  deinit {
    buffer?.deallocate()
  }

  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict {
    switch download.received(head, of: request.id) {
    case .write(let file, let offset, let count):
      destination = .file(file, next: offset, left: count)
      if let wanted { shorten(to: wanted) }
      let capacity = min(count ?? .max, Int64(download.options.writeBuffer))
      buffer = .allocate(byteCount: Int(max(capacity, 1)), alignment: 4096)
      return .continue
    case .skip:
      destination = .nowhere(left: 64 << 10)
      return .continue
    case .refuse: return .abort
    }
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    switch destination {
    case .none: return .abort
    case .nowhere(let left):
      destination = .nowhere(left: left - body.count)
      return left >= body.count ? .continue : .abort
    case .file(let file, _, let left):
      if file.opening.isClosed, filled + body.count > (buffer?.count ?? 0) {
        file.opening.whenOpen { transfer.resume() }
        return .pause
      }
      if let left, left < Int64(body.count) || wanted != nil && left == Int64(body.count) {
        // Another request fetches the rest, none of which is waited for; or else, more than was announced is not the
        // chunk that was asked for.
        if wanted != nil { _ = gather(UnsafeRawBufferPointer(rebasing: body.prefix(Int(left)))) }
        return .abort
      }
      if download.mustWaitForRecord(file, then: { transfer.resume() }) { return .pause }
      if download.throttle(body.count, of: transfer) { return .pause }
      download.ledger.pulse()
      return gather(body) ? .continue : .abort
    }
  }

  /// From now on only the response's first `count` bytes are wanted.
  func shorten(to count: Int64) {
    wanted = count
    guard case .file(let file, let next, _) = destination else { return }
    destination = .file(file, next: next, left: max(0, count - received - Int64(filled)))
  }

  private func gather(_ body: UnsafeRawBufferPointer) -> Bool {
    guard case .file(let file, let next, let left) = destination, let buffer else { return false }
    destination = .file(file, next: next, left: left.map { $0 - Int64(body.count) })
    var rest = body[...]
    while !rest.isEmpty {
      if filled == buffer.count, !flush() { return false }
      let count = min(rest.count, buffer.count - filled)
      UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<filled + count])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
      filled += count
      rest = rest.dropFirst(count)
    }
    return filled < buffer.count || file.opening.isClosed || flush()
  }

  /// Writes what is gathered. False where nothing may be written any more; the download knows why.
  private func flush() -> Bool {
    guard filled > 0, case .file(let file, let next, let left) = destination, let buffer else { return true }
    guard download.mayWrite(to: file) else { return false }
    do throws(StorageError) {
      try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<filled]), at: next)
    } catch {
      download.storageFailed(error)
      return false
    }
    destination = .file(file, next: next + Int64(filled), left: left)
    received += Int64(filled)
    flushedAt = Clocks.boottime()
    download.wrote(filled, to: file, by: self)
    filled = 0
    return true
  }

  /// Writes what was gathered since before `time`: a slow connection takes minutes to fill the buffer.
  func flush(before time: Int64) {
    guard flushedAt < time, case .file(let file, _, _) = destination, !file.opening.isClosed else { return }
    _ = flush()
  }

  /// The response is over, whole or not: writes the rest, which may have to wait for the staging file.
  func finish() async {
    guard case .file(let file, _, _) = destination, filled > 0 else { return }
    await file.opening.opened()
    _ = flush()
  }
}
