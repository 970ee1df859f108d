/// An open multipart upload, or a tus upload that is not complete (or is a part of a later one).
package struct StoreUpload: Sendable {
  package var id: String
  /// `bucket/key`, or `tus/ID`.
  package var key: String
  /// S3: by part number. tus: the bodies received, counted from 1.
  package var parts: [Int: StorePiece] = [:]
  /// tus: the declared length; nil while it is deferred.
  package var length: Int64?
  package var headers: [String: String] = [:]
  package var metadata: [String: String] = [:]
  /// S3: the algorithm given at the creation, and `COMPOSITE` or `FULL_OBJECT`.
  package var checksum: StoreChecksum?
  package var checksumType: String?
  /// tus: a part of a concatenation.
  package var isPartial = false
  /// Counts the uploads of the store, from 1.
  package var ordinal = 0
  /// Seconds of the epoch.
  package var created = 0

  init(id: String, key: String) {
    self.id = id
    self.key = key
  }

  /// The parts in order.
  package var pieces: [StorePiece] { parts.sorted { $0.key < $1.key }.map(\.value) }

  /// The number of bytes received.
  package var size: Int64 { parts.values.reduce(0) { $0 + $1.size } }

  /// Drops the last bytes, so that `size` are left.
  mutating func truncate(to size: Int64) {
    let kept = StoreObject(pieces: pieces).part(0..<max(0, min(size, self.size))) ?? []
    parts = Dictionary(uniqueKeysWithValues: kept.enumerated().map { ($0.offset + 1, $0.element) })
  }
}
