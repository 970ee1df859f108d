import ReelhaulCodec
import TaskCore

/// Decodes commands: one JSON object, with or without CloudEvents headers. Unknown fields of records are ignored, so
/// that newer producers can send to older workers. Any other problem is a ``Rejection``.
package enum CommandDecoder {
  /// The largest message, 1 MiB.
  package static let sizeLimit = 1 << 20

  /// The command of a record. If a control command or a submitted task has no `id`, the id comes from the message's
  /// `id`, else from its `ce_id` header, else from `origin`. So a record that is delivered twice is one command. A submitted
  /// task without a `traceparent` has that of the headers.
  package static func decode(
    _ value: [UInt8]?, headers: [(String, [UInt8])] = [], origin: MessageOrigin
  ) throws(Rejection) -> Command {
    guard let value, !value.isEmpty else { throw Rejection(.empty, "the record has no value") }
    let command = try decode(value) { CloudEvent.id(of: headers) ?? origin.id }
    guard case .submit(var spec) = command, spec.traceparent == nil else { return command }
    spec.trace = TraceContext(of: headers)
    return .submit(spec)
  }

  /// The command in `value`. `makeID` makes an id if the message has none.
  package static func decode(_ value: [UInt8], makeID: () -> UniqueID) throws(Rejection) -> Command {
    try read(value) { reader throws(DecodingFailure) in try CommandEnvelope(from: &reader) }.command(makeID: makeID)
  }

  /// The command in a line of a batch: a whole command, or only the task of a submit. Unknown fields are refused here,
  /// unlike in a program's record, because the author of the line can correct it.
  package static func decode(line: [UInt8], makeID: () -> UniqueID) throws(Rejection) -> Command {
    // Most lines are correct tasks, and are read only once.
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
    case .command(let envelope): return try envelope.command(makeID: makeID)
    }
  }

  private enum Line {
    case task(TaskDraft)
    case command(CommandEnvelope)
  }

  /// The names allowed in a line without a command. `command` is one of them, so that its misspellings get a
  /// suggestion.
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
