import TaskCore

/// The answer to ListMultipartUploads: one page.
package struct S3UploadList: Hashable, S3Document {
  package static let element = "ListMultipartUploadsResult"

  package struct Upload: Hashable, Sendable {
    package var key: String
    package var uploadID: String
    package var initiated: Timestamp?
  }

  /// Where the next page begins: `key-marker` and `upload-id-marker`.
  package struct Marker: Hashable, Sendable {
    package var key: String
    package var uploadID: String?
  }

  package var uploads: [Upload]
  /// Nil if this is the last page.
  package var next: Marker?

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    let isEncoded = element.isURLEncoded
    uploads = try element.children("Upload").map { upload throws(S3XMLError) in
      Upload(
        key: try upload.key("Key", isEncoded: isEncoded), uploadID: try upload.string("UploadId"),
        initiated: upload.timestamp("Initiated"))
    }
    guard try element.bool("IsTruncated") else { return }
    next = Marker(
      key: try element.key("NextKeyMarker", isEncoded: isEncoded), uploadID: element.optional("NextUploadIdMarker"))
  }
}
