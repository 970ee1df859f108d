import ReelhaulCodec
import TaskCore

/// A task as a producer wrote it: its id, kind and destination may be missing still.
struct TaskDraft {
  static let names = TaskFieldTable.tasks.names

  /// The producer's fields, and the defaults of all other fields.
  private let fields: TaskSpec
  /// The members that were there: bit n for the table's member n.
  private let found: UInt64
  /// The offset of the draft's last byte, which errors about missing fields name.
  let end: Int

  private static let (id, kind, source) = (bit(of: "id"), bit(of: "kind"), bit(of: "source"))

  private static func bit(of name: String) -> UInt64 { 1 << UInt64(TaskFieldTable.tasks.index(named: name)) }

  /// `known` are the names that the reader may meet, more than ``names`` where others than a task's may stand there.
  init(from reader: inout JSONReader, known: [String] = names) throws(DecodingFailure) {
    let table = TaskFieldTable.tasks
    var fields = TaskSpec.standard
    var found: UInt64 = 0
    try reader.object(known: known) { reader, name throws(DecodingFailure) in
      guard let index = table.index(of: name) else { return try reader.skip() }
      try table.read(index, from: &reader, into: &fields)
      found |= 1 << UInt64(index)
    }
    (self.fields, self.found) = (fields, found)
    end = reader.position - 1
  }

  var id: UniqueID? { found & Self.id == 0 ? nil : fields.id }

  var hasKind: Bool { found & Self.kind != 0 }

  /// The task. Without an id of its own it gets one from `makeID`, and without a kind it is a download.
  func spec(makeID: () -> UniqueID) throws(DecodingFailure) -> TaskSpec {
    guard found & Self.source != 0 || !fields.kind.needsSource else {
      throw DecodingFailure(.missing("source"), offset: end)
    }
    var spec = fields
    if found & Self.id == 0 { spec.id = makeID() }
    return spec
  }

  /// The task as it may be submitted: filled in and checked. `member` is that of the message in which the draft stands.
  func submission(in member: String? = nil, makeID: () -> UniqueID) throws(Rejection) -> TaskSpec {
    var spec: TaskSpec
    do throws(DecodingFailure) {
      spec = try self.spec(makeID: makeID)
    } catch {
      throw Rejection(member.map(error.within) ?? error)
    }
    spec.fillInDestination()
    do throws(InvalidTask) {
      try spec.validateWithParameters()
    } catch {
      throw Rejection(.invalidField, (member.map { "\($0)." } ?? "") + error.description)
    }
    return spec
  }
}
