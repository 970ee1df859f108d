/// The answer to CompleteMultipartUpload.
package struct S3CompletedUpload: Hashable, S3Document {
  package static let element = "CompleteMultipartUploadResult"

  /// Without quotes.
  package var etag: String
  /// Base64, of the whole object or of its parts. See ``checksumType``.
  package var crc32c: String?
  /// `COMPOSITE` or `FULL_OBJECT`, if the store tells it.
  package var checksumType: String?

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    etag = try element.etag()
    crc32c = element.optional("ChecksumCRC32C")
    checksumType = element.optional("ChecksumType")
  }
}
