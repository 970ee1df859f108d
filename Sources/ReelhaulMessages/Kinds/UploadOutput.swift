import ReelhaulCodec
import TaskCore

/// The `output` of an upload or a copy: `{"location", "etag", "versionId", "bytes", "verified"}`, and `remark` if there is
/// one.
package struct UploadOutput: Hashable, Sendable {
  /// What proved that the destination has the source's bytes. `size` is weak, `none` is nothing.
  package enum Verified: String, CaseIterable, Sendable {
    case sha256, crc32c, md5, size, none
  }

  /// The URL of what was made. Its JSON does not show the values of a query.
  package var location: String
  package var etag: String?
  package var versionID: String?
  package var bytes: Int64
  package var verified: Verified
  /// What is not guaranteed, for people.
  package var remark: String?

  package init(
    location: String, etag: String? = nil, versionID: String? = nil, bytes: Int64, verified: Verified,
    remark: String? = nil
  ) {
    self.location = location
    self.etag = etag
    self.versionID = versionID
    self.bytes = bytes
    self.verified = verified
    self.remark = remark
  }

  /// Servers may send any text. Those of S3 have at most 1024 bytes.
  private static let tagLimit = 1024

  package var json: [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("location", URLRedaction.redact(location))
        json.member("etag", orNull: etag?.prefix(bytes: Self.tagLimit))
        json.member("versionId", orNull: versionID?.prefix(bytes: Self.tagLimit))
        json.member("bytes", bytes)
        json.member("verified", verified.rawValue)
        json.member("remark", remark)
      }
    }
  }

  package init(json: [UInt8]) throws(DecodingFailure) {
    self = try JSONReader.read(json) { reader throws(DecodingFailure) in
      var (location, etag, versionID, remark): (String?, String?, String?, String?)
      var bytes: Int64?
      var verified: Verified?
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "location": location = try reader.string()
        case "etag": etag = try reader.string()
        case "versionId": versionID = try reader.string()
        case "bytes": bytes = try reader.integer(0...Int64.max)
        case "verified": verified = try reader.choice()
        case "remark": remark = try reader.string()
        default: try reader.skip()
        }
      }
      guard let location else { throw reader.missing("location") }
      guard let bytes else { throw reader.missing("bytes") }
      guard let verified else { throw reader.missing("verified") }
      return UploadOutput(
        location: location, etag: etag, versionID: versionID, bytes: bytes, verified: verified, remark: remark)
    }
  }
}
