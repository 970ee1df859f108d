import ReelhaulCodec

extension TusTarget {
  struct Session {
    /// One URL for each segment.
    var urls: [String] = []
    /// `Tus-Checksum-Algorithm` that this client knows.
    var hashes = false
    /// Whether an upload can be given up.
    var terminates = false
    /// Whether a former upload of the file may have ended, whose answer was lost.
    var isAgain = false
    /// Whether a creation may have left an upload that nobody knows of.
    var hasOrphan = false
    /// The upload that the others were joined to.
    var joined: String?
    /// Whether the server has said that it lacks bytes.
    var isShort = false
  }
}

extension TusTarget.Session: UploadSession {
  mutating func read(_ name: JSONName, from reader: inout JSONReader) throws(DecodingFailure) {
    switch name {
    case "urls":
      try reader.array { reader, _ throws(DecodingFailure) in urls.append(try reader.string()) }
    case "hashes": hashes = try reader.bool()
    case "terminates": terminates = try reader.bool()
    case "again": isAgain = try reader.bool()
    case "orphan": hasOrphan = try reader.bool()
    case "joined": joined = try reader.string()
    case "short": isShort = try reader.bool()
    default: try reader.skip()
    }
  }

  var json: [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("urls", urls)
        json.member("hashes", hashes)
        json.member("terminates", terminates)
        json.member("again", isAgain)
        if hasOrphan { json.member("orphan", true) }
        if let joined { json.member("joined", joined) }
        if isShort { json.member("short", true) }
      }
    }
  }
}
