/// The body of DeleteObjects. A request has at most ``limit`` objects, and needs `Content-MD5` or a checksum.
package struct S3Deletion: Hashable, Sendable {
  package static let limit = 1000

  package struct Object: Hashable, Sendable {
    package var key: String
    package var versionID: String?
    /// Deletes the object only if it still has this entity tag, where the store knows the condition.
    package var etag: String?

    package init(key: String, versionID: String? = nil, etag: String? = nil) {
      self.key = key
      self.versionID = versionID
      self.etag = etag
    }
  }

  package var objects: [Object]
  /// Whether the answer names only the objects that were not deleted.
  package var isQuiet: Bool

  package init(_ objects: [Object], isQuiet: Bool = true) {
    self.objects = objects
    self.isQuiet = isQuiet
  }

  package var xml: [UInt8] {
    var writer = S3XMLWriter()
    writer.element("Delete", S3XMLWriter.namespace) { writer in
      for object in objects {
        writer.element("Object") { writer in
          writer.text("Key", object.key)
          writer.text("VersionId", object.versionID)
          writer.text("ETag", object.etag.map { "\"\(S3ETag.bare($0))\"" })
        }
      }
      writer.text("Quiet", isQuiet ? "true" : "false")
    }
    return writer.bytes
  }
}
