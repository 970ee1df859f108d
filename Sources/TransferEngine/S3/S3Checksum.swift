import ReelhaulCodec
import ReelhaulDigest

/// The values of the fields with which S3 checks what it receives.
package enum S3Checksum {
  /// The value of `x-amz-checksum-crc32c`.
  package static func crc32c(_ crc: UInt32) -> String {
    Base64.encode(withUnsafeBytes(of: crc.bigEndian) { Array($0) })
  }

  /// The value of `Content-MD5` for a small body.
  package static func contentMD5(_ body: [UInt8]) -> String { Base64.encode(digest(.md5, of: body)) }

  /// The checksum of an object, from those of its parts in order (kind `FULL_OBJECT`).
  package static func fullCRC32C(_ parts: [(crc: UInt32, size: Int64)]) -> UInt32 {
    parts.reduce(0) { CRC32C.multiply(CRC32C.zeros($1.size), $0) ^ $1.crc }
  }
}

/// Arithmetic of polynomials modulo that of CRC32C; the highest bit is the lowest power.
private enum CRC32C {
  private static let polynomial: UInt32 = 0x82F6_3B78

  static func multiply(_ a: UInt32, _ b: UInt32) -> UInt32 {
    var (product, b) = (UInt32(0), b)
    for power in 0..<32 {
      if a & (1 << 31) >> UInt32(power) != 0 { product ^= b }
      b = b & 1 == 0 ? b >> 1 : b >> 1 ^ polynomial
    }
    return product
  }

  /// The factor by which a checksum changes when `count` bytes of zeros follow.
  static func zeros(_ count: Int64) -> UInt32 {
    // 1 and the eighth power of x.
    var (product, square, count) = (UInt32(1) << 31, UInt32(1) << 23, count)
    while count > 0 {
      if count & 1 == 1 { product = multiply(square, product) }
      square = multiply(square, square)
      count >>= 1
    }
    return product
  }
}
