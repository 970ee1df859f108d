import ReelhaulSystem
import Testing

@testable import ControlAPI

@Suite struct SnapshotsTests {
  @Test("a read that takes longer than its age is read once for all who wait, and again for those who come later")
  func joined() async throws {
    let snapshots = Snapshots()
    let reads = Lock(0)
    let read: @Sendable () async throws -> [UInt8] = {
      let number = reads.withLock { count in
        count += 1
        return count
      }
      try await Task.sleep(for: .milliseconds(300))
      return [UInt8(number)]
    }
    async let first = snapshots.value(.init("key"), age: .milliseconds(50), read)
    try await Task.sleep(for: .milliseconds(150))
    let second = try await snapshots.value(.init("key"), age: .milliseconds(50), read)
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
