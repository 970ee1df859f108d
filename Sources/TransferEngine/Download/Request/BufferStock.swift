/// Buffers of receivers that are not in use, so that transfers which pause all the time need no new memory each time.
// @unchecked: used only on its root's loop.
final class BufferStock: @unchecked Sendable {
  /// Only buffers of this size are kept: the others are those of small files, which seldom pause.
  static let size = 64 << 10
  private static let most = 32

  private var free: [UnsafeMutableRawBufferPointer] = []

  deinit {
    for buffer in free { buffer.deallocate() }
  }

  func take(_ size: Int) -> UnsafeMutableRawBufferPointer {
    if size == Self.size, let buffer = free.popLast() { return buffer }
    return .allocate(byteCount: size, alignment: 16)
  }

  func giveBack(_ buffer: UnsafeMutableRawBufferPointer) {
    guard buffer.count == Self.size, free.count < Self.most else { return buffer.deallocate() }
    free.append(buffer)
  }
}
