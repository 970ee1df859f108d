import TaskCore

/// The answer to ListObjectsV2: one page.
package struct S3ObjectList: Hashable, S3Document {
  package static let element = "ListBucketResult"

  package struct Object: Hashable, Sendable {
    package var key: String
    package var size: Int64
    package var lastModified: Timestamp?
  }

  package var objects: [Object]
  /// The `continuation-token` of the next page; nil if this is the last one.
  package var nextToken: String?

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    let isEncoded = element.isURLEncoded
    objects = try element.children("Contents").map { object throws(S3XMLError) in
      Object(
        key: try object.key("Key", isEncoded: isEncoded), size: try object.integer("Size"),
        lastModified: object.timestamp("LastModified"))
    }
    nextToken = try element.bool("IsTruncated") ? try element.string("NextContinuationToken") : nil
  }
}
