import CReelhaulCrypto

/// Keyed digests (RFC 2104).
package enum HMAC {
  /// The 32 bytes of HMAC-SHA256.
  package static func sha256(key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
      var length: UInt32 = 0
      // It fails only if there is no memory.
      CReelhaulCrypto.HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, buffer.baseAddress, &length)
      count = Int(length)
    }
  }
}
