import ReelhaulCodec

extension S3Target {
  /// Nil for an object that one PUT makes.
  struct Session {
    var uploadID: String?
    /// Whether the store takes checksums of parts.
    var hasChecksums = true
    /// Whether it makes one checksum of them, that of the whole object.
    var isWhole = false
    /// Whether the store copies the bytes by itself.
    var copies = false
  }
}

extension S3Target.Session: UploadSession {
  mutating func read(_ name: JSONName, from reader: inout JSONReader) throws(DecodingFailure) {
    switch name {
    case "uploadId": uploadID = try reader.string()
    case "checksums": hasChecksums = try reader.bool()
    case "wholeChecksum": isWhole = try reader.bool()
    case "copies": copies = try reader.bool()
    default: try reader.skip()
    }
  }

  var json: [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("uploadId", uploadID)
        json.member("checksums", hasChecksums)
        if isWhole { json.member("wholeChecksum", true) }
        if copies { json.member("copies", true) }
      }
    }
  }
}
