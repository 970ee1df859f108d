import ReelhaulDigest
import ReelhaulSystem
import TaskCore

/// The bytes of a generated file. Byte `i` depends only on the seed and `i`, so any range of a file of any size can be
/// sent and compared without storing it.
package struct OriginContent: Hashable, Sendable {
  package var seed: UInt64

  package init(seed: UInt64) {
    self.seed = seed
  }

  /// Fills `buffer` with the bytes from `offset` on.
  package func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64) {
    var next = 0
    var position = UInt64(offset)
    while next < buffer.count {
      let within = Int(position & 7)
      let bytes = word(position >> 3)
      if within == 0, buffer.count - next >= 8 {
        buffer.storeBytes(of: bytes.littleEndian, toByteOffset: next, as: UInt64.self)
        next += 8
        position += 8
      } else {
        buffer[next] = UInt8(truncatingIfNeeded: bytes >> UInt64(8 * within))
        next += 1
        position += 1
      }
    }
  }

  package func bytes(_ range: Range<Int64>) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
      fill(UnsafeMutableRawBufferPointer(buffer), from: range.lowerBound)
      count = range.count
    }
  }

  private func word(_ index: UInt64) -> UInt64 {
    var numbers = SplitMix64(seed: seed, skipping: index)
    return numbers.next()
  }
}

extension OriginContent {
  /// The SHA-256 of the first `size` bytes.
  package func sha256(size: Int64) -> [UInt8] {
    var state = DigestState(.sha256)
    var next: Int64 = 0
    while next < size {
      let piece = bytes(next..<min(size, next + 1 << 20))
      piece.withUnsafeBytes { state.update($0) }
      next += Int64(piece.count)
    }
    return state.finish()
  }
}
