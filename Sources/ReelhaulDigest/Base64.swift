import CReelhaulCrypto

/// Base64 with padding (RFC 4648, 4).
package enum Base64 {
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    let bytes = Array(bytes)
    let length = (bytes.count + 2) / 3 * 4
    // EVP_EncodeBlock writes a final zero, which needs one more byte and is not counted.
    return String(unsafeUninitializedCapacity: length + 1) { text in
      Int(EVP_EncodeBlock(text.baseAddress, bytes, Int32(bytes.count)))
    }
  }
}
