import ReelhaulSystem
import TaskCore

/// The checksum by which a new owner knows that the staging file holds what was recorded: CRC32C of the last recorded
/// range's bytes, of at most its last 64 KiB.
enum TailCheck {
  static let length: Int64 = 64 << 10

  /// `nil` where nothing is recorded. Blocks.
  static func crc(of done: ByteRanges, in file: StagingFile) throws(StorageError) -> UInt32? {
    guard let last = done.ranges.last else { return nil }
    let tail = try file.read(max(last.lowerBound, last.upperBound - length)..<last.upperBound)
    return tail.withUnsafeBytes { crc32c($0) }
  }
}
