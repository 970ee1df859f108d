import ReelhaulCodec
import TaskCore

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

extension S3Target.Session {
  init(_ json: [UInt8]) throws {
    do throws(DecodingFailure) {
      self = try JSONReader.read(json) { reader throws(DecodingFailure) in
        var session = S3Target.Session()
        try reader.object { reader, name throws(DecodingFailure) in
          switch name {
          case "uploadId": session.uploadID = try reader.string()
          case "checksums": session.hasChecksums = try reader.bool()
          case "wholeChecksum": session.isWhole = try reader.bool()
          case "copies": session.copies = try reader.bool()
          default: try reader.skip()
          }
        }
        return session
      }
    } catch {
      throw TaskFailure(code: .checkpointUnreadable, message: "the upload's session: \(error)", class: .wait)
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
