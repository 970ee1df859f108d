import CStore
import Glibc

/// The bytes that arrive on one connection.
final class StoreStream {
  let socket: Int32
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
  private var start = 0
  private var end = 0

  init(_ socket: Int32) {
    self.socket = socket
  }

  deinit {
    buffer.deallocate()
  }

  /// The head of a request; nil at the end of the connection.
  func readHead() -> OriginRequest? {
    while true {
      let received = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
      let found = rh_find(received.baseAddress, received.count, "\r\n\r\n")
      if found >= 0 {
        let count = found + 4
        start += count
        return OriginRequest(head: String(decoding: received[..<count], as: UTF8.self))
      }
      guard end - start < 64 << 10, fill() else { return nil }
    }
  }

  /// Gives up to `count` bytes to `body`, piece by piece. Returns false if the connection ends first, or if `body` does.
  func read(_ count: Int64, _ body: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    var left = count
    while left > 0 {
      if start == end, !fill() { return false }
      let piece = UnsafeRawBufferPointer(rebasing: buffer[start..<start + Int(min(left, Int64(end - start)))])
      start += piece.count
      left -= Int64(piece.count)
      guard body(piece) else { return false }
    }
    return true
  }

  /// As ``read(_:_:)``, for a chunked body and its trailers.
  func readChunks(_ body: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    while let line = readLine() {
      guard let size = Int64(line.prefix { $0.isHexDigit }, radix: 16) else { return false }
      if size == 0 {
        while let trailer = readLine() { if trailer.isEmpty { return true } }
        return false
      }
      guard read(size, body), readLine() == "" else { return false }
    }
    return false
  }

  private func readLine() -> String? {
    while true {
      let received = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
      let count = rh_find(received.baseAddress, received.count, "\r\n")
      if count >= 0 {
        start += count + 2
        return String(decoding: received[..<count], as: UTF8.self)
      }
      guard end - start < 64 << 10, fill() else { return nil }
    }
  }

  /// Receives more behind what is there.
  private func fill() -> Bool {
    if start > 0 {
      if let base = buffer.baseAddress { memmove(base, base + start, end - start) }
      end -= start
      start = 0
    }
    while true {
      let count = recv(socket, buffer.baseAddress?.advanced(by: end), buffer.count - end, 0)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      end += count
      return true
    }
  }
}
