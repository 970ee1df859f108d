/// Buffers of receivers that are not in use, so that transfers which pause all the time need no new memory each time.
// @unchecked: used only on its root's loop.
final class BufferStock: @unchecked Sendable {
  /// Larger buffers go back to the system.
  static let largest = 64 << 10
  private static let bytes = 2 << 20

  private var free: [Int: [UnsafeMutableRawBufferPointer]] = [:]
  private var stored = 0

  deinit {
    for buffer in free.values.joined() { buffer.deallocate() }
  }

  func take(_ size: Int) -> UnsafeMutableRawBufferPointer {
    guard let buffer = free[size]?.popLast() else { return .allocate(byteCount: size, alignment: 16) }
    stored -= size
    return buffer
  }

  func giveBack(_ buffer: UnsafeMutableRawBufferPointer) {
    guard buffer.count <= Self.largest, stored + buffer.count <= Self.bytes else { return buffer.deallocate() }
    free[buffer.count, default: []].append(buffer)
    stored += buffer.count
  }
}
