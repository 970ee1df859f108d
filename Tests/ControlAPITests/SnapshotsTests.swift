import ReelhaulSystem
import TestKit
import Testing

@testable import ControlAPI

@Suite struct SnapshotsTests {
  @Test("a read that takes longer than its age is read once for all who wait, and again for those who come later")
  func joined() async throws {
    let snapshots = Snapshots()
    let reads = Lock(0)
    let isOpen = Lock(false)
    let read: @Sendable () async throws -> [UInt8] = {
      let number = reads.withLock { count in
        count += 1
        return count
      }
      while !isOpen.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
      return [UInt8(number)]
    }
    async let first = snapshots.value(.init("key"), age: .milliseconds(50), read)
    try await eventually("it is being read") { reads.withLock { $0 } == 1 }
    try await Task.sleep(for: .milliseconds(150))
    let second = try await snapshots.value(.init("key"), age: .milliseconds(50), read) {
      isOpen.withLock { $0 = true }
    }
    let both = try await first
    #expect(both == [1] && second == [1])
    try await Task.sleep(for: .milliseconds(100))
    let third = try await snapshots.value(.init("key"), age: .milliseconds(50), read)
    #expect(third == [2])
  }

  @Test("a read that failed is read again") func failed() async throws {
    struct Broken: Error {}
    let snapshots = Snapshots()
    await #expect(throws: Broken.self) { try await snapshots.value(.init("key"), age: .seconds(60)) { throw Broken() } }
    let bytes = try await snapshots.value(.init("key"), age: .seconds(60)) { [7] }
    #expect(bytes == [7])
  }
}

extension Snapshots {
  /// Calls `asked` once the call waits.
  fileprivate func value(
    _ key: Key, age: Duration, _ read: @escaping @Sendable () async throws -> [UInt8],
    asked: @escaping @Sendable () -> Void
  ) async throws -> [UInt8] {
    // On this actor, and so not before the call leaves it.
    Task {
      _ = self
      asked()
    }
    return try await value(key, age: age, read)
  }
}
