import ReelhaulDigest

/// A complete object of a ``StoreServer``.
package struct StoreObject: Sendable {
  /// One after the other: one per body that it was made of.
  package var pieces: [StorePiece]
  /// With quotes.
  package var etag = ""
  /// Content type, storage class and the like, names in lower case.
  package var headers: [String: String] = [:]
  /// `x-amz-meta-*` without the prefix, or tus's `Upload-Metadata`, decoded.
  package var metadata: [String: String] = [:]
  /// In Base64, as S3 returns them; of multipart uploads composite with `-N`, or of the full object.
  package var checksums: [StoreChecksum: String] = [:]
  package var checksumType: String?
  package var versionID: String?
  /// Seconds of the epoch.
  package var modified = 0

  package init(pieces: [StorePiece]) {
    self.pieces = pieces
    etag = "\"\(StoreText.hex(pieces.count == 1 ? pieces[0].tag : digest(.md5, of: pieces.flatMap(\.tag))))\""
  }

  package var size: Int64 { pieces.reduce(0) { $0 + $1.size } }

  /// All bytes; nil if the store has kept digests only.
  package var bytes: [UInt8]? {
    var all: [UInt8] = []
    for piece in pieces {
      guard let bytes = piece.bytes(0..<piece.size) else { return nil }
      all += bytes
    }
    return all
  }

  /// In hexadecimal. Nil if the store has kept digests only, of several bodies: then ``matches(_:)`` compares.
  package var sha256: String? {
    if pieces.count == 1, !pieces[0].sha256.isEmpty { return StoreText.hex(pieces[0].sha256) }
    var state = DigestState(.sha256)
    for piece in pieces {
      for start in stride(from: 0, to: piece.size, by: 1 << 20) {
        guard let bytes = piece.bytes(start..<min(piece.size, start + 1 << 20)) else { return nil }
        bytes.withUnsafeBytes { state.update($0) }
      }
    }
    return StoreText.hex(state.finish())
  }

  /// Whether the object is the first ``size`` bytes of `content`, whatever the store has kept of it.
  package func matches(_ content: OriginContent) -> Bool { matches { content.bytes($0) } }

  /// Whether the object has the bytes that `content` returns for each range.
  package func matches(_ content: (Range<Int64>) -> [UInt8]) -> Bool {
    var offset: Int64 = 0
    return pieces.allSatisfy { piece in
      defer { offset += piece.size }
      return piece.matches(content, at: offset)
    }
  }

  /// What `range` of the object is; nil if it cuts a piece of which only digests are known.
  func part(_ range: Range<Int64>) -> [StorePiece]? {
    var parts: [StorePiece] = []
    var offset: Int64 = 0
    for piece in pieces {
      let within = range.clamped(to: offset..<offset + piece.size)
      if !within.isEmpty {
        guard let part = piece.part(within.lowerBound - offset..<within.upperBound - offset) else { return nil }
        parts.append(part)
      }
      offset += piece.size
    }
    return parts
  }
}
