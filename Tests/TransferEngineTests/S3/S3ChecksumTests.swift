import ReelhaulSystem
import Testing

@testable import TransferEngine

@Suite struct S3ChecksumTests {
  @Test("the checksum of parts is that of all bytes", arguments: [[], [0], [1], [5, 0, 3], [100, 1, 4096, 70_000]])
  func parts(sizes: [Int]) {
    var (all, parts): ([UInt8], [(crc: UInt32, size: Int64)]) = ([], [])
    for (number, size) in sizes.enumerated() {
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number &* 7) }
      all += bytes
      parts.append((bytes.withUnsafeBytes { crc32c($0) }, Int64(size)))
    }
    #expect(S3Checksum.fullCRC32C(parts) == all.withUnsafeBytes { crc32c($0) })
  }
}
