import CStore
import CTLS
import ReelhaulDigest

/// A checksum that S3 or tus knows, by its name there.
package enum StoreChecksum: String, CaseIterable, Sendable {
  case crc32, crc32c, crc64nvme, sha1, sha256, md5

  /// The header of S3 that carries it, in lower case.
  package var header: String { "x-amz-checksum-\(rawValue)" }

  /// The kind for the functions of CStore; nil for digests.
  private var crc: Int32? {
    switch self {
    case .crc32: 0
    case .crc32c: 1
    case .crc64nvme: 2
    case .sha1, .sha256, .md5: nil
    }
  }

  /// The checksum of `pieces`, one after the other, in Base64.
  package func of(_ pieces: [[UInt8]]) -> String { Base64.encode(bytes(of: pieces)) }

  package func bytes(of pieces: [[UInt8]]) -> [UInt8] {
    if let crc {
      let sum = pieces.reduce(0) { sum, piece in piece.withUnsafeBytes { rh_crc(crc, sum, $0.baseAddress, $0.count) } }
      return number(sum)
    }
    let context = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(context) }
    EVP_DigestInit_ex(context, self == .sha1 ? EVP_sha1() : self == .md5 ? EVP_md5() : EVP_sha256(), nil)
    for piece in pieces { piece.withUnsafeBytes { _ = EVP_DigestUpdate(context, $0.baseAddress, $0.count) } }
    var digest = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    EVP_DigestFinal_ex(context, &digest, &count)
    return Array(digest[..<Int(count)])
  }

  /// The checksum of the whole from those of its parts, which only a CRC has.
  package func combined(_ parts: [(sum: [UInt8], size: Int64)]) -> [UInt8]? {
    guard let crc else { return nil }
    let sum = parts.reduce(0) { sum, part in
      rh_crc_combine(crc, sum, part.sum.reduce(0) { $0 << 8 | UInt64($1) }, UInt64(part.size))
    }
    return number(sum)
  }

  var isCRC: Bool { crc != nil }

  /// The CRC of what `sum` is of, followed by `buffer`.
  func extended(_ sum: UInt64, by buffer: UnsafeRawBufferPointer) -> UInt64 {
    rh_crc(crc ?? 0, sum, buffer.baseAddress, buffer.count)
  }

  func number(_ sum: UInt64) -> [UInt8] {
    let width = self == .crc64nvme ? 8 : 4
    return (0..<width).reversed().map { UInt8(truncatingIfNeeded: sum >> UInt64(8 * $0)) }
  }
}
