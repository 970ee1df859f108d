/// The answer to CreateMultipartUpload.
package struct S3InitiatedUpload: Hashable, S3Document {
  package static let element = "InitiateMultipartUploadResult"

  package var uploadID: String

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    uploadID = try element.string("UploadId")
  }
}
