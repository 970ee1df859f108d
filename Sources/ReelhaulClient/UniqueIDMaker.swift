import Glibc
import ReelhaulSystem
import TaskCore

/// Makes many version 7 UUIDs quickly: it asks the system for the random bytes of sixteen at a time.
package struct UniqueIDMaker {
  private var random = BufferedRandom()

  package init() {}

  /// A new UUID with the present time.
  package mutating func make() -> UniqueID { UniqueID(milliseconds: Clocks.realtimeMilliseconds(), using: &random) }
}

private struct BufferedRandom: RandomNumberGenerator {
  /// 256 bytes, the most that one call of getentropy(3) returns.
  private static let count = 32
  private var words: [UInt64] = []

  mutating func next() -> UInt64 {
    if words.isEmpty {
      words = [UInt64](unsafeUninitializedCapacity: Self.count) { buffer, count in
        precondition(getentropy(buffer.baseAddress, 8 * Self.count) == 0, "the system has no random bytes")
        count = Self.count
      }
    }
    return words.removeLast()
  }
}

extension UniqueID {
  /// A new version 7 UUID of this moment: for tasks and commands.
  public static func make() -> UniqueID {
    UniqueID(milliseconds: Clocks.realtimeMilliseconds())
  }
}
