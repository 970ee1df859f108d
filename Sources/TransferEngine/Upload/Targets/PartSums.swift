import ReelhaulCodec
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// The checksums of a part.
struct PartSums {
  let crc: UInt32
  let crc32c: String
  private let md5: String?

  init(_ bytes: ArraySlice<UInt8>, needsMD5: Bool) {
    crc = bytes.withUnsafeBytes { ReelhaulSystem.crc32c($0) }
    crc32c = S3Checksum.crc32c(crc)
    md5 = needsMD5 ? Hex.encode(digest(.md5, of: bytes)) : nil
  }

  /// What proves that the store has these bytes; nil if nothing does.
  func proof(etag: String, crc32c told: String?) -> UploadOutput.Verified? {
    if let told { return told == crc32c ? .crc32c : nil }
    return S3ETag.bare(etag).lowercased() == md5 ? .md5 : nil
  }
}
