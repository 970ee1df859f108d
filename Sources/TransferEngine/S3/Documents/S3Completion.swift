/// The body of CompleteMultipartUpload.
package struct S3Completion: Hashable, Sendable {
  package struct Part: Hashable, Sendable {
    package var number: Int
    /// As the store told it, with or without quotes.
    package var etag: String
    /// Base64, if the part was sent with it.
    package var crc32c: String?

    package init(number: Int, etag: String, crc32c: String? = nil) {
      self.number = number
      self.etag = etag
      self.crc32c = crc32c
    }
  }

  package var parts: [Part]

  package init(_ parts: [Part]) {
    self.parts = parts
  }

  /// Parts in the order of their numbers, as stores require.
  package var xml: [UInt8] {
    var writer = S3XMLWriter()
    writer.element("CompleteMultipartUpload", S3XMLWriter.namespace) { writer in
      for part in parts.sorted(by: { $0.number < $1.number }) {
        writer.element("Part") { writer in
          writer.text("ETag", "\"\(S3ETag.bare(part.etag))\"")
          writer.text("ChecksumCRC32C", part.crc32c)
          writer.text("PartNumber", "\(part.number)")
        }
      }
    }
    return writer.bytes
  }
}
