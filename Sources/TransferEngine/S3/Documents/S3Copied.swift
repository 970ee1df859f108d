/// The answer to CopyObject.
package struct S3CopiedObject: Hashable, S3Document {
  package static let element = "CopyObjectResult"

  /// Without quotes.
  package var etag: String

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    etag = try element.etag()
  }
}

/// The answer to UploadPartCopy.
package struct S3CopiedPart: Hashable, S3Document {
  package static let element = "CopyPartResult"

  /// Without quotes.
  package var etag: String

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    etag = try element.etag()
  }
}
