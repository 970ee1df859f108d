import CReelhaulCrypto

/// Tags of messages under a secret key (GMAC, NIST SP 800-38D): who does not know the key cannot find another message with
/// the same tag. Several times as fast as SHA-256. One thread may use it at a time.
package final class KeyedTag {
  /// The number of bytes of a key.
  package static let keyLength = 16

  private let context: OpaquePointer

  /// `key` has ``keyLength`` bytes.
  package init(key: [UInt8]) {
    precondition(key.count == Self.keyLength)
    // It fails only if there is no memory.
    context = EVP_CIPHER_CTX_new()!
    Self.expect(EVP_EncryptInit_ex2(context, Cipher.gcm.pointer, key, nil, nil))
  }

  deinit {
    EVP_CIPHER_CTX_free(context)
  }

  /// Begins the message with this number, which is a part of its tag.
  package func begin(_ number: Int) {
    let nonce = [0, 0, 0, 0] + withUnsafeBytes(of: UInt64(number).bigEndian) { Array($0) }
    Self.expect(EVP_EncryptInit_ex2(context, nil, nil, nonce, nil))
  }

  package func update(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 30))
      var length: Int32 = 0
      // What is not encrypted is authenticated all the same.
      Self.expect(
        EVP_EncryptUpdate(context, nil, &length, part.bindMemory(to: UInt8.self).baseAddress, Int32(part.count)))
      rest = rest.dropFirst(part.count)
    }
  }

  /// The first 64 bits of the tag of the message, which it ends.
  package func finish() -> UInt64 {
    var (length, tag): (Int32, [UInt8]) = (0, Array(repeating: 0, count: 16))
    Self.expect(EVP_EncryptFinal_ex(context, &tag, &length))
    Self.expect(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, &tag))
    return tag.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// A tag that was not computed would be equal to any other.
  private static func expect(_ result: Int32) {
    precondition(result == 1, "OpenSSL cannot compute AES-128-GCM")
  }
}

// @unchecked: an EVP_CIPHER is immutable and reference-counted by OpenSSL. It lives as long as the process.
private struct Cipher: @unchecked Sendable {
  let pointer: OpaquePointer?

  static let gcm = Cipher(pointer: EVP_CIPHER_fetch(nil, "AES-128-GCM", nil))
}
