import ReelhaulDigest

/// The body of a request while it is received: its digests, and its bytes as long as they are not too many.
final class StoreBody {
  private(set) var size: Int64 = 0
  private var bytes: [UInt8]?
  private let limit: Int64
  private var md5 = DigestState(.md5)
  private var sha256 = DigestState(.sha256)
  /// Checksums that run along. SHA-1 needs the bytes.
  private var sums: [StoreChecksum: UInt64] = [:]

  init(limit: Int64, expected: Int64?, checksums: Set<StoreChecksum>) {
    self.limit = limit
    bytes = []
    if let expected, expected <= limit { bytes?.reserveCapacity(Int(expected)) }
    for kind in checksums where kind.isCRC { sums[kind] = 0 }
  }

  func append(_ buffer: UnsafeRawBufferPointer) {
    md5.update(buffer)
    sha256.update(buffer)
    for (kind, sum) in sums { sums[kind] = kind.extended(sum, by: buffer) }
    size += Int64(buffer.count)
    if size > limit { bytes = nil } else { bytes?.append(contentsOf: buffer) }
  }

  /// What was received. Call it once.
  func piece(checksums: Set<StoreChecksum>) -> StorePiece {
    var piece = StorePiece(bytes.map { .bytes($0) } ?? .digests, size: size)
    piece.md5 = md5.finish()
    piece.sha256 = sha256.finish()
    for kind in checksums {
      switch kind {
      case .md5: piece.checksums[kind] = piece.md5
      case .sha256: piece.checksums[kind] = piece.sha256
      case .sha1: if let bytes { piece.checksums[kind] = kind.bytes(of: [bytes]) }
      case .crc32, .crc32c, .crc64nvme: piece.checksums[kind] = sums[kind].map(kind.number)
      }
    }
    return piece
  }
}
