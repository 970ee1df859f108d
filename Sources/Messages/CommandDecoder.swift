import Codec
import TaskCore

/// Reads commands: one JSON object, with or without CloudEvents headers. Unknown fields of records are ignored, so that newer
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
    try command(in: value, refusingUnknownNames: false, makeID)
  }

  /// The command in a line of a batch: a whole command, or only the task of a submit. A field that there is not is refused:
  /// whoever wrote the line is there to mend it.
  package static func decode(line: [UInt8], makeID: () -> UUID) throws(Rejection) -> Command {
    var isCommand = false
    var stranger: DecodingFailure?
    do throws(Rejection) {
      let task = try read(line, refusingUnknownNames: true) { reader throws(DecodingFailure) in
        try TaskDraft(from: &reader) { reader, name throws(DecodingFailure) in
          if case "command" = name {
            isCommand = true
          } else if stranger == nil {
            stranger = reader.unknown(name, known: TaskDraft.names + ["command"]).within(name.text)
          }
          try reader.skip()
        }
      }
      if !isCommand {
        if let stranger { throw Rejection(stranger) }
        return .submit(try task.submission(makeID: makeID))
      }
    } catch {
      // The reading may have ended before the name came.
      guard isCommand || (try? decode(line, makeID: makeID)) != nil else { throw error }
    }
    return try command(in: line, refusingUnknownNames: true, makeID)
  }

  private static func command(
    in value: [UInt8], refusingUnknownNames: Bool, _ makeID: () -> UUID
  ) throws(Rejection) -> Command {
    try read(value, refusingUnknownNames: refusingUnknownNames) { reader throws(DecodingFailure) in
      try CommandEnvelope(from: &reader)
    }.command(makeID: makeID)
  }

  private static func read<Value>(
    _ bytes: [UInt8], refusingUnknownNames: Bool,
    _ body: (inout JSONReader) throws(DecodingFailure) -> Value
  ) throws(Rejection) -> Value {
    do throws(DecodingFailure) {
      return try JSONReader.read(bytes, limit: sizeLimit, refusingUnknownNames: refusingUnknownNames, body)
    } catch {
      throw Rejection(error)
    }
  }
}
