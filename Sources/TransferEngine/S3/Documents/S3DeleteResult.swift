/// The answer to DeleteObjects.
package struct S3DeleteResult: Hashable, S3Document {
  package static let element = "DeleteResult"

  package struct Deleted: Hashable, Sendable {
    package var key: String
    package var versionID: String?
    /// Whether a marker was added, or taken away, instead of an object.
    package var isMarker: Bool
  }

  package struct Refused: Hashable, Sendable {
    package var key: String
    package var versionID: String?
    package var error: S3Error
  }

  /// Empty if the request was quiet.
  package var deleted: [Deleted]
  package var refused: [Refused]

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    deleted = try element.children("Deleted").map { object throws(S3XMLError) in
      Deleted(
        key: try object.string("Key"), versionID: object.optional("VersionId"),
        isMarker: try object.bool("DeleteMarker"))
    }
    refused = try element.children(S3Error.element).map { object throws(S3XMLError) in
      Refused(
        key: try object.string("Key"), versionID: object.optional("VersionId"), error: S3Error(object, status: 200))
    }
  }
}
