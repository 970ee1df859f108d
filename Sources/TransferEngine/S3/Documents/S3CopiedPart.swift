/// The answer to UploadPartCopy.
package struct S3CopiedPart: Hashable, S3Document {
  package static let element = "CopyPartResult"

  /// Without quotes.
  package var etag: String
  /// Base64, if the store tells it.
  package var crc32c: String?
  package var sha256: String?

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    etag = try element.etag()
    crc32c = element.optional("ChecksumCRC32C")
    sha256 = element.optional("ChecksumSHA256")
  }
}
