import ReelhaulCodec
import TaskCore
import Testing

@testable import ReelhaulMessages

/// The table of fields against the task itself, and what follows from the table.
struct TaskFieldTableTests {
  private static let other = UniqueID(high: 1, low: 2)

  /// A task whose field is not as by default.
  private static func spec(with field: TaskField, in spec: TaskSpec = .standard) -> TaskSpec {
    var spec = spec
    switch field.value {
    case .id(let place): place.set(&spec, other)
    case .ids(let place): place.set(&spec, [other])
    case .kind(let place): place.set(&spec, .noop)
    case .text(let place, _), .name(let place, _): place.set(&spec, "x")
    case .optionalText(let place, _), .optionalName(let place, _): place.set(&spec, "x")
    case .integer(let place, let range): place.set(&spec, range.upperBound)
    case .bytes(let place, let least): place.set(&spec, least)
    case .time(let place): place.set(&spec, Timestamp(microseconds: 1))
    case .digest(let place, let count): place.set(&spec, [UInt8](repeating: 7, count: count))
    case .ifExists(let place): place.set(&spec, .replace)
    case .headers(let place): place.set(&spec, [HeaderField(name: "A", value: "1")])
    case .seconds(let place): place.set(&spec, [5])
    case .labels(let place): place.set(&spec, ["a": "1"])
    case .flag(let place): place.set(&spec, true)
    case .json(let place, _): place.set(&spec, Array("[1]".utf8))
    }
    return spec
  }

  @Test("every property of a task has a field in the table")
  func isComplete() {
    let changed = TaskField.all.reduce(TaskSpec.standard) { Self.spec(with: $1, in: $0) }
    func parts(_ value: Any) -> [(String, String)] {
      Mirror(reflecting: value).children.flatMap { child -> [(String, String)] in
        let isGroup = child.value is TaskCore.Expectation || child.value is RetryPolicy
        return isGroup ? parts(child.value) : [(child.label ?? "", "\(child.value)")]
      }
    }
    for (before, after) in zip(parts(TaskSpec.standard), parts(changed)) {
      #expect(before.1 != after.1, "the property \(before.0) has no field")
    }
    #expect(parts(changed).count == TaskField.all.count)
  }

  @Test("a field that is given is written, comes back, and differs; all others stay as they are", arguments: paths)
  func fieldsGoBothWays(path: String) throws {
    let field = try #require(TaskField.named(path))
    let spec = Self.spec(with: field)
    let bytes = TaskSpecJSON.encode(spec)
    #expect(try TaskSpecJSON.decode(bytes) == spec)
    let text = String(decoding: bytes, as: UTF8.self)
    for name in TaskDraft.names {
      let isThere = ["id", "kind", "source", field.outermostName].contains(name)
      #expect(text.contains("\"\(name)\":") == isThere)
    }
    #expect(spec.differences(from: .standard) == (Self.mayChange.contains(path) ? [] : [field.outermostName]))
    #expect(TaskField.all.filter { !$0.value.isSame(in: spec, .standard) }.map(\.path) == [path])
  }

  private static let paths = TaskField.all.map(\.path)
  /// A second submit may have other values of them.
  private static let mayChange = ["priority", "traceparent", "tracestate"]

  @Test("a field whose value has the wrong kind is named", arguments: paths)
  func errorsNameTheField(path: String) throws {
    let field = try #require(TaskField.named(path))
    // No field takes a fraction, except for one that takes anything.
    if case .json = field.value { return }
    let inner = "\"\(field.name)\":1.5"
    let text = "{\(field.object.map { "\"\($0)\":{\(inner)}" } ?? inner)}"
    let error = #expect(throws: DecodingFailure.self) { try TaskSpecJSON.decode(Array(text.utf8)) }
    #expect(error?.path.joined(separator: ".") == path)
  }

  @Test("every name is found, and no other")
  func findsNames() throws {
    let table = TaskFieldTable.tasks
    var found: [Int?] = []
    let names = table.names + ["", "i", "ID", "identity", "expect.sha256", "sha256"]
    let text = "{\(names.map { "\"\($0)\":1" }.joined(separator: ","))}"
    try JSONReader.read(Array(text.utf8)) { reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in
        found.append(table.index(of: name))
        try reader.skip()
      }
    }
    #expect(found == Array(table.names.indices) + [nil, nil, nil, nil, nil, nil])
  }

  @Test(
    "parameters are kept as they came, without white space between tokens",
    arguments: [
      (#"{"a" : [ 1.50 , 1e3,null ],\#n "b \" c" : "x\ty" }"#, #"{"a":[1.50,1e3,null],"b \" c":"x\ty"}"#),
      (#"{"b":1,"a":2,"a":3}"#, #"{"b":1,"a":2,"a":3}"#), ("7", "7"), ("[]", "[]"), (#""\\u0000""#, #""\\u0000""#),
      ("true", "true"),
    ])
  func keepsParameters(written: String, kept: String) throws {
    let text = "{\"command\":\"submit\",\"task\":{\"source\":\"https://a/b\",\"parameters\": \(written) }}"
    guard case .submit(let spec) = try CommandDecoder.decode(Array(text.utf8), makeID: { Self.other }) else {
      Issue.record("not a submit")
      return
    }
    #expect(spec.parameters.map { String(decoding: $0, as: UTF8.self) } == kept)
    #expect(try TaskSpecJSON.decode(TaskSpecJSON.encode(spec)) == spec)
    let document = TaskDocument(spec: spec, state: .queued, createdAt: Timestamp(microseconds: 0))
    #expect(try TaskDocumentJSON.decode(TaskDocumentJSON.encode(document)).spec.parameters == spec.parameters)
  }

  @Test("parameters that are null are absent, and those of more than 64 KiB are refused")
  func limitsParameters() throws {
    func parameters(_ json: String) throws(Rejection) -> [UInt8]? {
      let line = Array("{\"source\":\"https://a/b\",\"parameters\":\(json)}".utf8)
      guard case .submit(let spec) = try CommandDecoder.decode(line: line, makeID: { Self.other }) else { return nil }
      return spec.parameters
    }
    #expect(try parameters("null") == nil)
    #expect(try parameters("\"\(String(repeating: "x", count: 65_534))\"")?.count == 65_536)
    #expect(throws: Rejection(.invalidField, "parameters: must be a JSON value of at most 65536 bytes")) {
      try parameters("\"\(String(repeating: "x", count: 65_535))\"")
    }
    #expect(throws: Rejection(.invalidField, "parameters: contains \\u0000, which the store cannot keep")) {
      try parameters(#"["\\","a\u0000"]"#)
    }
    let error = #expect(throws: Rejection.self) { try parameters("{1}") }
    #expect(error?.reason.contains("parameters") == true)
  }
}
