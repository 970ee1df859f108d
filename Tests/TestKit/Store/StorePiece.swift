import ReelhaulDigest

/// Bytes that a store keeps: as they were received in one request, or generated.
package struct StorePiece: Sendable {
  package enum Source: Sendable {
    case bytes([UInt8])
    case generated(OriginContent, Range<Int64>)
    case zeros
    /// Only the digests are known, because the body was larger than ``StoreOptions/keepsBodiesUpTo``.
    case digests
  }

  package var source: Source
  package var size: Int64
  /// Digests of what was received; empty for generated pieces.
  package var md5: [UInt8] = []
  package var sha256: [UInt8] = []
  /// The checksums that the request or its upload asked for.
  package var checksums: [StoreChecksum: [UInt8]] = [:]

  package init(_ source: Source, size: Int64) {
    self.source = source
    self.size = size
  }

  package init(bytes: [UInt8]) {
    self.init(.bytes(bytes), size: Int64(bytes.count))
    md5 = digest(.md5, of: bytes)
    sha256 = digest(.sha256, of: bytes)
  }

  /// What an entity tag is made of. A generated piece has some other constant value, as encrypted objects have.
  var tag: [UInt8] { md5.isEmpty ? digest(.md5, of: Array("\(source) \(size)".utf8)) : md5 }

  /// The bytes of `range`; nil if only digests are known.
  package func bytes(_ range: Range<Int64>) -> [UInt8]? {
    switch source {
    case .bytes(let bytes): Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
    case .generated(let content, let all):
      content.bytes(all.lowerBound + range.lowerBound..<all.lowerBound + range.upperBound)
    case .zeros: [UInt8](repeating: 0, count: range.count)
    case .digests: nil
    }
  }

  /// A part of the piece; nil if only digests are known.
  func part(_ range: Range<Int64>) -> StorePiece? {
    switch source {
    case .bytes(let bytes): StorePiece(bytes: Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
    case .generated(let content, let all):
      StorePiece(
        .generated(content, all.lowerBound + range.lowerBound..<all.lowerBound + range.upperBound),
        size: Int64(range.count))
    case .zeros: StorePiece(.zeros, size: Int64(range.count))
    case .digests: range == 0..<size ? self : nil
    }
  }

  /// The steps that send `range`; nil if only digests are known.
  func steps(_ range: Range<Int64>) -> [OriginResponse.Step]? {
    switch source {
    case .bytes: return bytes(range).map { [.bytes($0)] }
    case .generated(let content, let all):
      return [.content(content, all.lowerBound + range.lowerBound..<all.lowerBound + range.upperBound)]
    case .zeros:
      let block = [UInt8](repeating: 0, count: min(1 << 20, range.count))
      let rest = block.isEmpty ? 0 : range.count % block.count
      let whole = block.isEmpty ? 0 : range.count / block.count
      return Array(repeating: .bytes(block), count: whole) + (rest > 0 ? [.bytes(Array(block[..<rest]))] : [])
    case .digests: return nil
    }
  }

  /// Whether the piece has the bytes `content` has from `offset` on. Compares digests if only these are known.
  func matches(_ content: (Range<Int64>) -> [UInt8], at offset: Int64) -> Bool {
    if case .digests = source {
      var state = DigestState(.sha256)
      forBlocks { block in
        content(offset + block.lowerBound..<offset + block.upperBound).withUnsafeBytes { state.update($0) }
      }
      return state.finish() == sha256
    }
    var isEqual = true
    forBlocks { block in
      if isEqual { isEqual = bytes(block) == content(offset + block.lowerBound..<offset + block.upperBound) }
    }
    return isEqual
  }

  private func forBlocks(_ body: (Range<Int64>) -> Void) {
    for start in stride(from: 0, to: size, by: 1 << 20) { body(start..<min(size, start + 1 << 20)) }
  }

  /// Flips a bit of the last byte.
  func corrupted() -> StorePiece {
    var piece = self
    if case .bytes(var bytes) = source, !bytes.isEmpty {
      bytes[bytes.count - 1] ^= 1
      piece.source = .bytes(bytes)
    } else if !piece.sha256.isEmpty {
      piece.sha256[0] ^= 1
    }
    return piece
  }
}
