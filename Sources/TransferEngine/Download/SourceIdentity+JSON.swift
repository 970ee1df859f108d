import ReelhaulCodec
import TaskCore

extension SourceIdentity {
  /// Writes the identity as the store keeps it; members without a value are left out.
  func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("finalURL", finalURL)
      json.member("size", size)
      json.member("etag", etag)
      if etagIsWeak { json.member("etagIsWeak", true) }
      json.member("lastModified", lastModified)
      json.member("date", date)
      json.member("versionID", versionID)
    }
  }

  init(from reader: inout JSONReader) throws(DecodingFailure) {
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
    self = identity
  }
}
