import CReelhaulCrypto

package enum DigestAlgorithm: Sendable {
  case sha256
  case md5

  /// The number of bytes of a digest.
  package var length: Int {
    switch self {
    case .sha256: 32
    case .md5: 16
    }
  }

  // Fetched once, because a fetch per digest costs more than hashing 300 bytes.
  fileprivate var method: Method {
    switch self {
    case .sha256: Method.sha256
    case .md5: Method.md5
    }
  }
}

/// One running digest, computed by OpenSSL's EVP. It may move between threads, but only one thread may use it at a
/// time.
// @unchecked: `update` is a mutating method of a non-copyable type, so only one caller uses the context at a time.
package struct DigestState: ~Copyable, @unchecked Sendable {
  private let context: OpaquePointer
  private let algorithm: DigestAlgorithm

  package init(_ algorithm: DigestAlgorithm) {
    self.algorithm = algorithm
    // EVP_MD_CTX_new fails only if there is no memory.
    context = EVP_MD_CTX_new()!
    EVP_DigestInit_ex2(context, algorithm.method.pointer, nil)
  }

  deinit {
    EVP_MD_CTX_free(context)
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
  }

  /// The digest of all bytes so far. Afterwards the state is that of a new digest.
  package mutating func finish() -> [UInt8] {
    let digest = [UInt8](unsafeUninitializedCapacity: algorithm.length) { buffer, count in
      var length: UInt32 = 0
      EVP_DigestFinal_ex(context, buffer.baseAddress, &length)
      count = Int(length)
    }
    EVP_DigestInit_ex2(context, algorithm.method.pointer, nil)
    return digest
  }
}

/// The digest of bytes in memory.
package func digest(_ algorithm: DigestAlgorithm, of bytes: some Collection<UInt8>) -> [UInt8] {
  var state = DigestState(algorithm)
  if bytes.withContiguousStorageIfAvailable({ state.update(UnsafeRawBufferPointer($0)) }) == nil {
    Array(bytes).withUnsafeBytes { state.update($0) }
  }
  return state.finish()
}

// @unchecked: an EVP_MD is immutable and reference-counted by OpenSSL. These live as long as the process.
private struct Method: @unchecked Sendable {
  let pointer: OpaquePointer?

  static let sha256 = Method(pointer: EVP_MD_fetch(nil, "SHA256", nil))
  static let md5 = Method(pointer: EVP_MD_fetch(nil, "MD5", nil))
}
