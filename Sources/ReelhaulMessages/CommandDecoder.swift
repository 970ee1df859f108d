import ReelhaulCodec
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
  package static func decode(_ value: [UInt8], makeID: () -> UniqueID) throws(Rejection) -> Command {
    try read(value) { reader throws(DecodingFailure) in try CommandEnvelope(from: &reader) }.command(makeID: makeID)
  }

  /// The command in a line of a batch: a whole command, or only the task of a submit. Whoever wrote the line is there to
  /// mend it: what a program's record may have, and would be passed over in silence, is refused.
  package static func decode(line: [UInt8], makeID: () -> UniqueID) throws(Rejection) -> Command {
    // Most lines are good tasks, and read once.
    let draft = try? JSONReader.read(line, limit: sizeLimit, refusingUnknownNames: true) {
      reader throws(DecodingFailure) in
      try TaskDraft(from: &reader)
    }
    if let draft { return .submit(try draft.submission(makeID: makeID)) }
    let line = try read(line, refusingUnknownNames: true) { reader throws(DecodingFailure) in
      guard let command = try reader.peek("command") else {
        return Line.task(try TaskDraft(from: &reader, known: namesOfTasks))
      }
      return .command(try CommandEnvelope(from: &reader, known: CommandEnvelope.names(of: command)))
    }
    switch line {
    case .task(let draft): return .submit(try draft.submission(makeID: makeID))
    case .command(let envelope):
      guard !envelope.hasIDBesidesItsTasks else {
        throw Rejection(
          .invalidField, "id: differs from the \"id\" of the task; a submit is identified only by the task's id")
      }
      return try envelope.command(makeID: makeID)
    }
  }

  private enum Line {
    case task(TaskDraft)
    case command(CommandEnvelope)
  }

  /// Of lines that are no command, so that one whose name is misspelt is told of it.
  private static let namesOfTasks = TaskDraft.names + ["command"]

  private static func read<Value>(
    _ bytes: [UInt8], refusingUnknownNames: Bool = false,
    _ body: (inout JSONReader) throws(DecodingFailure) -> Value
  ) throws(Rejection) -> Value {
    do throws(DecodingFailure) {
      return try JSONReader.read(bytes, limit: sizeLimit, refusingUnknownNames: refusingUnknownNames, body)
    } catch {
      throw Rejection(error)
    }
  }
}
