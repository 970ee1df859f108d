import Codec
import TaskCore

/// Reads commands: one JSON object, with or without CloudEvents headers. Unknown fields are ignored, so that newer
/// producers can talk to older workers; everything else that is not understood is a ``Rejection``.
package enum CommandDecoder {
  /// A message may be as long as this, 1 MiB.
  package static let sizeLimit = 1 << 20

  /// The command of a record. Where a control has no `id`, or a submitted task none, it is taken from the `id` of the
  /// message or its `ce_id` header, and as a last resort derived from `origin`: a record delivered twice is one command.
  package static func decode(
    _ value: [UInt8]?, headers: [(String, [UInt8])] = [], origin: MessageOrigin
  ) throws(Rejection) -> Command {
    guard let value, !value.isEmpty else { throw Rejection(.empty, "the record has no value") }
    return try decode(value) { CloudEvent.id(of: headers) ?? origin.id }
  }

  /// The command in `value`; `makeID` gives an id where the message has none.
  package static func decode(_ value: [UInt8], makeID: () -> UUID) throws(Rejection) -> Command {
    try read(value) { reader throws(DecodingFailure) in try CommandEnvelope(from: &reader) }.command(makeID: makeID)
  }

  /// The command in a line of a batch: a whole command, or only the task of a submit.
  package static func decode(line: [UInt8], makeID: () -> UUID) throws(Rejection) -> Command {
    var isCommand = false
    do throws(Rejection) {
      let task = try read(line) { reader throws(DecodingFailure) in
        try TaskDraft(from: &reader) { name in
          if case "command" = name { isCommand = true }
        }
      }
      if !isCommand { return .submit(try task.submission(makeID: makeID)) }
    } catch {
      // The reading may have ended before the name came.
      guard isCommand || (try? decode(line, makeID: makeID)) != nil else { throw error }
    }
    return try decode(line, makeID: makeID)
  }

  private static func read<Value>(
    _ bytes: [UInt8], _ body: (inout JSONReader) throws(DecodingFailure) -> Value
  ) throws(Rejection) -> Value {
    do throws(DecodingFailure) {
      return try JSONReader.read(bytes, limit: sizeLimit, body)
    } catch {
      throw Rejection(error)
    }
  }
}
