import ReelhaulCodec
import TaskCore

/// A task as a producer wrote it. Its id, kind and destination may still be missing.
struct TaskDraft {
  static let names = [
    "id", "kind", "source", "destination", "parameters", "priority", "queue", "after", "notBefore", "expect",
    "ifExists", "headers",
    "maxAttempts", "retryAfter", "rate", "credential", "labels", "paused",
  ]

  let id: UniqueID?
  let kind: TaskKind?
  private let source: String?
  /// The offset of the draft's last byte. Errors about missing fields point there.
  let end: Int
  private let fields: TaskSpec

  /// `known` are the allowed names: more than ``names`` if the object may have other members than a task's.
  init(from reader: inout JSONReader, known: [String] = names) throws(DecodingFailure) {
    var id: UniqueID?
    var kind: TaskKind?
    var source: String?
    var fields = TaskSpec(id: UniqueID(high: 0, low: 0), kind: .download, source: "")
    try reader.object(known: known) { reader, name throws(DecodingFailure) in
      switch name {
      case "id": id = try reader.uuid()
      case "kind": kind = TaskKind(rawValue: try reader.string(limit: 64))
      case "source": source = try reader.string(limit: TaskSpec.urlLimit)
      case "destination": fields.destination = try reader.string(limit: TaskSpec.urlLimit)
      case "parameters": fields.parameters = try reader.raw()
      case "priority": fields.priority = try reader.integer(TaskSpec.priorities)
      case "queue": fields.queue = try reader.string(limit: 100)
      case "after": fields.after = try reader.uuids()
      case "notBefore": fields.notBefore = try reader.timestamp()
      case "expect": fields.expect = try Expectation(from: &reader)
      case "ifExists": fields.ifExists = try reader.choice()
      case "headers": fields.headers = try HeaderField.fields(from: &reader)
      case "maxAttempts": fields.retry.maxAttempts = try reader.integer(RetryPolicy.attempts)
      case "retryAfter": fields.retry.intervals = try RetryPolicy.intervals(from: &reader)
      case "rate": fields.rate = try reader.integer(1...Int64.max)
      case "credential": fields.credential = try reader.string(limit: 100)
      case "labels": fields.labels = try reader.strings()
      case "paused": fields.paused = try reader.bool()
      default: try reader.skip()
      }
    }
    (self.id, self.kind, self.source, self.fields) = (id, kind, source, fields)
    end = reader.position - 1
  }

  /// The task. It gets an id from `makeID` if it has none, and is a download if it has no kind.
  func spec(makeID: () -> UniqueID) throws(DecodingFailure) -> TaskSpec {
    var spec = fields
    spec.kind = kind ?? .download
    if let source {
      spec.source = source
    } else if spec.kind.needsSource {
      throw DecodingFailure(.missing("source"), offset: end)
    }
    spec.id = id ?? makeID()
    return spec
  }

  /// The task as it may be submitted: completed and checked. `member` is the message's member that contains the draft.
  func submission(in member: String? = nil, makeID: () -> UniqueID) throws(Rejection) -> TaskSpec {
    var spec: TaskSpec
    do throws(DecodingFailure) {
      spec = try self.spec(makeID: makeID)
    } catch {
      throw Rejection(member.map(error.within) ?? error)
    }
    spec.fillInDestination()
    do throws(InvalidTask) {
      try spec.validate()
    } catch {
      throw Rejection(.invalidField, (member.map { "\($0)." } ?? "") + error.description)
    }
    return spec
  }
}

extension Expectation {
  fileprivate init(from reader: inout JSONReader) throws(DecodingFailure) {
    var expect = Expectation()
    try reader.object(known: ["sha256", "md5", "bytes"]) { reader, name throws(DecodingFailure) in
      switch name {
      case "sha256": expect.sha256 = try reader.digest(count: 32)
      case "md5": expect.md5 = try reader.digest(count: 16)
      case "bytes": expect.bytes = try reader.integer(0...Int64.max)
      default: try reader.skip()
      }
    }
    self = expect
  }
}

extension HeaderField {
  /// Reads `{"name": "value", …}`. The fields are sorted by name, so that they are equal even if a store has reordered
  /// them.
  fileprivate static func fields(from reader: inout JSONReader) throws(DecodingFailure) -> [HeaderField] {
    var fields: [HeaderField] = []
    try reader.object { reader, name throws(DecodingFailure) in
      fields.append(HeaderField(name: name.text, value: try reader.string()))
    }
    return fields.sorted { $0.name < $1.name }
  }
}

extension RetryPolicy {
  fileprivate static func intervals(from reader: inout JSONReader) throws(DecodingFailure) -> [Int] {
    var intervals: [Int] = []
    try reader.array { reader, _ throws(DecodingFailure) in
      intervals.append(try reader.integer(RetryPolicy.intervalSeconds))
    }
    return intervals
  }
}
