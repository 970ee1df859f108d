/// The answer to ListParts: one page.
package struct S3PartList: Hashable, S3Document {
  package static let element = "ListPartsResult"

  package struct Part: Hashable, Sendable {
    package var number: Int
    /// Without quotes.
    package var etag: String
    package var size: Int64
    /// Base64, if the store tells it.
    package var crc32c: String?
  }

  package var parts: [Part]
  /// The `part-number-marker` of the next page; nil if this is the last one.
  package var nextMarker: Int?

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    parts = try element.children("Part").map { part throws(S3XMLError) in
      Part(
        number: try part.integer("PartNumber"), etag: try part.etag(), size: try part.integer("Size"),
        crc32c: part.word("ChecksumCRC32C"))
    }
    // Some stores call the last page truncated as well, and it is empty then.
    guard try element.bool("IsTruncated"), let last = parts.map(\.number).max() else { return }
    // Some do not name the marker, or name one that is behind the page.
    nextMarker = max(last, element.word("NextPartNumberMarker").flatMap { Int($0) } ?? last)
  }
}
