import TaskCore

/// The answer to ListObjectsV2: one page.
package struct S3ObjectList: Hashable, S3Document {
  package static let element = "ListBucketResult"

  package struct Object: Hashable, Sendable {
    package var key: String
    package var size: Int64
    /// Without quotes.
    package var etag: String?
    package var lastModified: Timestamp?
  }

  package var objects: [Object]
  /// Prefixes that end with the delimiter, if one was asked for.
  package var commonPrefixes: [String]
  /// The `continuation-token` of the next page; nil if this is the last one.
  package var nextToken: String?

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    let isEncoded = element.isURLEncoded
    objects = try element.children("Contents").map { object throws(S3XMLError) in
      Object(
        key: try object.key("Key", isEncoded: isEncoded), size: try object.integer("Size"),
        etag: object.optional("ETag").map(S3ETag.bare), lastModified: object.timestamp("LastModified"))
    }
    commonPrefixes = try element.children("CommonPrefixes").map { prefix throws(S3XMLError) in
      try prefix.key("Prefix", isEncoded: isEncoded)
    }
    nextToken = try element.bool("IsTruncated") ? try element.string("NextContinuationToken") : nil
  }
}
