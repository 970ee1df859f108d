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
        crc32c: part.optional("ChecksumCRC32C"))
    }
    // A page that ends where it began would be read for ever.
    nextMarker = try element.bool("IsTruncated") ? try element.integer("NextPartNumberMarker") : nil
    if let nextMarker, parts.last.map({ $0.number > nextMarker }) ?? true {
      throw S3XMLError("the list of parts goes on, but does not advance")
    }
  }
}
