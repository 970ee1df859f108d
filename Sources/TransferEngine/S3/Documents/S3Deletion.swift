/// The body of DeleteObjects. A request has at most ``limit`` objects, and needs `Content-MD5` or a checksum. Its answer
/// names only the objects that were not deleted.
package struct S3Deletion: Hashable, Sendable {
  package static let limit = 1000

  package var keys: [String]

  package init(_ keys: [String]) {
    self.keys = keys
  }

  package var xml: [UInt8] {
    var writer = S3XMLWriter()
    writer.element("Delete", S3XMLWriter.namespace) { writer in
      for key in keys {
        writer.element("Object") { $0.text("Key", key) }
      }
      writer.text("Quiet", "true")
    }
    return writer.bytes
  }
}
