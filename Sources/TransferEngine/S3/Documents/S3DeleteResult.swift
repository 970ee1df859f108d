/// The answer to DeleteObjects.
package struct S3DeleteResult: Hashable, S3Document {
  package static let element = "DeleteResult"

  package struct Refused: Hashable, Sendable {
    package var key: String
    package var error: S3Error
  }

  package var refused: [Refused]

  package init(_ element: S3XMLElement) throws(S3XMLError) {
    refused = try element.children(S3Error.element).map { object throws(S3XMLError) in
      Refused(key: try object.string("Key"), error: S3Error(object, status: 200))
    }
  }
}
