import ReelhaulCodec
import ReelhaulMessages
import TaskCore

extension DownloadCheckpoint {
  private static let version = 1

  /// The checkpoint in the envelope that the store keeps.
  ///
  /// Unproven bytes are not counted: an attempt that recorded nothing else made no progress.
  package var envelope: Checkpoint {
    let payload = JSONWriter.write { json in
      json.object { json in
        json.name("identity")
        identity.write(to: &json)
        json.member("volume", volume)
        json.member("staging", stagingName)
        json.bounds("done", of: done)
        json.member("tailCRC", tailCRC.map(Int64.init))
        json.member("publishing", hex: publishing?.sha256)
        json.member("verified", publishing?.verification?.rawValue)
        if isUnproven { json.member("unproven", true) }
      }
    }
    return Checkpoint(
      version: Self.version, generation: generation, bytesDone: isUnproven ? 0 : done.count, bytesTotal: identity.size,
      stage: publishing == nil ? nil : Checkpoint.publishing, payload: payload)
  }

  /// Reads what ``envelope`` wrote. Throws if the envelope has another version, or if the payload is damaged.
  package init(_ envelope: Checkpoint) throws(DecodingFailure) {
    self = try JSONReader.read(envelope.payload) { reader throws(DecodingFailure) in
      guard envelope.version == Self.version else {
        throw reader.invalid("this program cannot read a checkpoint of version \(envelope.version)")
      }
      var identity: SourceIdentity?
      var volume: UniqueID?
      var stagingName: String?
      var done = ByteRanges()
      var tailCRC: UInt32?
      var publishing: Publishing?
      var verification: Verification?
      var isUnproven = false
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "identity": identity = try SourceIdentity(from: &reader)
        case "volume": volume = try reader.uuid()
        case "staging": stagingName = try reader.string()
        case "done": done = try reader.bounds()
        case "tailCRC": tailCRC = UInt32(try reader.integer(0...Int64(UInt32.max)))
        case "publishing":
          guard let sha256 = Hex.decode(try reader.string(limit: 64)) else {
            throw reader.invalid("expected hexadecimal digits")
          }
          publishing = Publishing(sha256: sha256)
        case "verified": verification = Verification(rawValue: try reader.string(limit: 64))
        case "unproven": isUnproven = try reader.bool()
        default: try reader.skip()
        }
      }
      publishing?.verification = verification
      guard let identity else { throw reader.missing("identity") }
      guard let volume else { throw reader.missing("volume") }
      guard let stagingName else { throw reader.missing("staging") }
      return DownloadCheckpoint(
        generation: envelope.generation, identity: identity, volume: volume, stagingName: stagingName, done: done,
        tailCRC: tailCRC, publishing: publishing, isUnproven: isUnproven)
    }
  }
}

extension SourceIdentity {
  /// Writes the identity in the form that the store keeps; leaves out members without a value.
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
