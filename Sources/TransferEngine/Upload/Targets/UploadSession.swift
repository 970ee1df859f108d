import ReelhaulCodec
import TaskCore

/// What a target records of its upload, for the runs that go on with it: a JSON object.
protocol UploadSession {
  init()
  /// Reads one member, and skips those that it does not know: a newer worker may have written them.
  mutating func read(_ name: JSONName, from reader: inout JSONReader) throws(DecodingFailure)
}

extension UploadSession {
  init(_ json: [UInt8]) throws {
    do throws(DecodingFailure) {
      self = try JSONReader.read(json) { reader throws(DecodingFailure) in
        var session = Self()
        try reader.object { reader, name throws(DecodingFailure) in try session.read(name, from: &reader) }
        return session
      }
    } catch {
      throw TaskFailure(code: .checkpointUnreadable, message: "the upload's session: \(error)", class: .wait)
    }
  }
}
