import ReelhaulCodec
import TaskCore

/// A source's identity as JSON, in the form of the store.
package enum SourceIdentityJSON {
  package static func encode(_ identity: SourceIdentity) -> [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("finalURL", identity.finalURL)
        json.member("size", identity.size)
        json.member("etag", identity.etag)
        if identity.etagIsWeak { json.member("etagIsWeak", true) }
        json.member("lastModified", identity.lastModified)
        json.member("date", identity.date)
        json.member("versionID", identity.versionID)
      }
    }
  }

  package static func decode(_ bytes: [UInt8]) throws(DecodingFailure) -> SourceIdentity {
    try JSONReader.read(bytes) { reader throws(DecodingFailure) in
      var identity = SourceIdentity(finalURL: "", size: nil)
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "finalURL": identity.finalURL = try reader.string()
        case "size": identity.size = try reader.integer(0...Int64.max)
        case "etag": identity.etag = try reader.string()
        case "etagIsWeak": identity.etagIsWeak = try reader.bool()
        case "lastModified": identity.lastModified = try reader.string()
        case "date": identity.date = try reader.string()
        case "versionID": identity.versionID = try reader.string()
        default: try reader.skip()
        }
      }
      return identity
    }
  }
}
