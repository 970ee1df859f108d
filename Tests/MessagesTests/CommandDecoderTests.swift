import TaskCore
import Testing

@testable import ReelhaulMessages

private let origin = MessageOrigin(topic: "reelhaul.commands", partition: 3, offset: 42, timestamp: 1_795_270_646_123)
private let taskID = "019adf3e-5a00-7cc1-9d3e-6d2f0a7e4b11"

private func decode(_ text: String, headers: [(String, [UInt8])] = []) throws(Rejection) -> Command {
  try CommandDecoder.decode(Array(text.utf8), headers: headers, origin: origin)
}

private func rejection(_ text: String) -> Rejection? {
  do throws(Rejection) {
    _ = try decode(text)
    return nil
  } catch {
    return error
  }
}

private func submit(_ fields: String) -> String {
  #"{"command":"submit","task":{"id":"\#(taskID)","source":"https://a/b.mp4",\#(fields)}}"#
}

struct CommandDecoderTests {
  @Test("the documented example of a submit is decoded")
  func readsTheContractsExample() throws {
    let text = #"""
      {"command":"submit","id":"019adf3e-5a00-7cc1-9d3e-6d2f0a7e4b12","task":{"id":"\#(taskID)","kind":"download",
      "source":"https://a/b.mp4","destination":"storage://default/a.mp4","priority":0,"queue":"default","after":[],
      "expect":{"sha256":"00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff","bytes":1},"future":[{}]},
      "future":1}
      """#
    guard case .submit(let spec) = try decode(text) else {
      Issue.record("not a submit")
      return
    }
    #expect(spec.id.description == taskID && spec.destination == "storage://default/a.mp4" && spec.expect.bytes == 1)
    #expect(spec.expect.sha256?.prefix(3) == [0x00, 0x11, 0x22])
  }

  @Test("a submit needs only a source; kind, destination and id have defaults")
  func oneLineIsEnough() throws {
    guard case .submit(let spec) = try decode(#"{"command":"submit","task":{"source":"https://a/b.mp4"}}"#) else {
      Issue.record("not a submit")
      return
    }
    #expect(spec.kind == .download && spec.destination == "storage://default/b.mp4" && spec.id == origin.id)
  }

  @Test("a command tells who asks for it, in up to 200 characters; other texts are refused")
  func actors() throws {
    func text(_ actor: String) -> String { #"{"command":"pause","taskId":"\#(taskID)","actor":\#(actor)}"# }
    for actor in ["cli:anna@mill", String(repeating: "ä", count: 200)] {
      guard case .control(let control) = try decode(text("\"\(actor)\"")) else {
        Issue.record("not a control")
        return
      }
      #expect(control.actor == actor)
      let encoded = String(decoding: CommandJSON.encode(.control(control)), as: UTF8.self)
      #expect(try decode(encoded) == .control(control))
    }
    for wrong in [#""""#, #""a\u0007b""#, "7", "\"\(String(repeating: "a", count: 201))\""] {
      #expect(rejection(text(wrong))?.code == .invalidField, "\(wrong)")
    }
    #expect(rejection(#"{"command":"submit","actor":"anna","task":{"source":"https://a/b.mp4"}}"#) == nil)
    #expect(rejection(#"{"command":"submit","actor":"","task":{"source":"https://a/b.mp4"}}"#) != nil)
  }

  @Test("a command's id comes from the message, else from the headers, else from the record")
  func idsComeFromTheMessageThenTheHeadersThenTheRecord() throws {
    func id(_ text: String, _ headers: [(String, [UInt8])] = []) throws -> UniqueID? {
      guard case .control(let control) = try decode(text, headers: headers) else { return nil }
      return control.id
    }
    let own = UniqueID(high: 7, low: 8)
    let event = UniqueID(high: 9, low: 10)
    let headers = [("ce_id", Array(event.description.utf8))]
    #expect(try id(#"{"command":"pause","id":"\#(own)","taskId":"\#(taskID)"}"#, headers) == own)
    #expect(try id(#"{"command":"pause","taskId":"\#(taskID)"}"#, headers) == event)
    #expect(try id(#"{"command":"pause","taskId":"\#(taskID)"}"#, [("ce_id", Array("A-1".utf8))]) == origin.id)
  }

  @Test("a submitted task without a trace has that of the record's headers")
  func traces() throws {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    let own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    func spec(_ fields: String, _ parent: String) throws -> TaskSpec {
      let headers = [("traceparent", Array(parent.utf8)), ("tracestate", Array("v=1".utf8))]
      guard case .submit(let spec) = try decode(submit(fields), headers: headers) else {
        throw Rejection(.empty, "not a submit")
      }
      return spec
    }
    let given = try spec(#""priority":1"#, parent)
    #expect(given.traceparent == parent && given.tracestate == "v=1")
    let owned = try spec("\"traceparent\":\"\(own)\"", parent)
    #expect(owned.traceparent == own && owned.tracestate == nil)
    #expect(try spec(#""priority":1"#, "00-nonsense").trace == nil)
  }

  @Test("ids derived from records differ for each record and sort by time")
  func derivedIdsDifferByRecordAndSortByTime() {
    var ids: Set<UniqueID> = [origin.id]
    for change in [
      { $0.topic = "x.commands" }, { $0.partition = 4 }, { $0.offset = 43 }, { $0.timestamp += 1 },
    ] as [(inout MessageOrigin) -> Void] {
      var other = origin
      change(&other)
      ids.insert(other.id)
    }
    #expect(ids.count == 5)
    var places: Set<UniqueID> = []
    for bit in 0..<42 { places.insert(MessageOrigin(topic: "a", partition: 0, offset: 1 << bit, timestamp: 7).id) }
    for bit in 0..<20 { places.insert(MessageOrigin(topic: "a", partition: 1 << bit, offset: 0, timestamp: 7).id) }
    #expect(places.count == 62)
    #expect(
      ids.max() == MessageOrigin(topic: origin.topic, partition: 3, offset: 42, timestamp: origin.timestamp + 1).id)
    #expect(origin.id.description.dropFirst(14).first == "8")
  }

  @Test(
    "a wrong message is rejected with a code",
    arguments: [
      ("", .empty), ("  ", .empty), ("not json", .malformed), ("[]", .malformed), (#"{"command":"#, .malformed),
      (#"{"command":"pause","command":"cancel","taskId":"\#(taskID)"}"#, .malformed), ("{}", .missingField),
      (#"{"command":"explode","taskId":"\#(taskID)"}"#, .unknownCommand), (#"{"command":7}"#, .invalidField),
      (#"{"command":"pause"}"#, .missingField), (#"{"command":"pause","taskId":"7"}"#, .invalidField),
      (#"{"command":"prioritize","taskId":"\#(taskID)"}"#, .missingField),
      (#"{"command":"prioritize","taskId":"\#(taskID)","priority":1001}"#, .invalidField),
      (#"{"command":"submit"}"#, .missingField), (#"{"command":"submit","task":{}}"#, .missingField),
      (#"{"command":"submit","task":[]}"#, .invalidField),
    ] as [(String, Rejection.Code)])
  func rejects(text: String, code: Rejection.Code) {
    #expect(rejection(text)?.code == code)
  }

  @Test(
    "a rejection names the wrong field of the task",
    arguments: [
      (#""source2":1,"priority":1.5"#, "task.priority: expected an integer"),
      (#""priority":5000"#, "from -1000 to 1000"),
      (#""expect":{"sha256":"abc"}"#, "task.expect.sha256: expected 64 hexadecimal digits"),
      (#""expect":{"md5":"zz"}"#, "task.expect.md5: expected 32 hexadecimal digits"),
      (#""after":["x"]"#, "task.after[0]: expected a UUID"),
      (#""notBefore":"tomorrow""#, "task.notBefore: expected a time"),
      (#""ifExists":"maybe""#, "task.ifExists: expected one of fail, skip, replace"),
      (#""headers":{"Cookie":"secret"}"#, "task.headers: Cookie is a secret"), (#""rate":0"#, "task.rate"),
      (#""destination":"storage://default/../x""#, "task.destination"),
      (#""destination":"file:///x""#, "task.destination: a task of kind download needs a storage://NAME/PATH URL"),
      (#""kind":"upload""#, "task.source: a task of kind upload needs a storage://NAME/PATH URL"),
      (
        #""kind":"copy","destination":"file:///x""#,
        "\"file\" is not supported: expected an http://, https://, s3://BUCKET/KEY, storage"
      ),
      (#""notBefore":"2026-01-15T12:00:60Z""#, "task.notBefore: second 60 exists only at the end of a month in UTC"),
      (#""maxAttempts":0"#, "task.maxAttempts"),
      (#""labels":{"a":1}"#, "task.labels.a: expected a string"), (#""queue":"a/b""#, "task.queue"),
      (#""retryAfter":[\#(String(repeating: "1,", count: 100))1]"#, "task.retryAfter: must be at most 100"),
      (#""labels":{"\u00e9":"1","e\u0301":"2"}"#, "the same name in two spellings"),
      (#""labels":{"a":"\u0000"}"#, "contains NUL"), (#""kind":"own","destination":"a\u0000b""#, "at byte 1"),
      (#""priority":1e400"#, "task.priority: expected an integer"),
      (#""priority":-99999999999999999999"#, "from -1000"),
      (#""rate":9223372036854775808"#, "task.rate"), (#""expect":{"bytes":1.5}"#, "task.expect.bytes: expected an in"),
      (#""notBefore":"294276-12-31T23:59:59Z""#, "expected a time"), (#""notBefore":"infinity""#, "expected a time"),
      (#""destination":"https://\#(String(repeating: "a", count: 1 << 19))""#, "task.destination"),
      (#""after":["00000000-0000-0000-0000-00000000000g"]"#, "task.after[0]: expected a UUID"),
    ])
  func namesTheFieldOfATask(fields: String, reason: String) throws {
    let answer = try #require(rejection(submit(fields)))
    #expect(answer.code == .invalidField)
    #expect(answer.reason.contains(reason), "\(answer.reason)")
  }

  @Test(
    "malformed JSON is rejected with its reason",
    arguments: [
      (#""labels":{"a":"\ud800"}"#, "surrogate"), (#""x":"\udc00\ud800""#, "surrogate"), (#""x":"\u00""#, ""),
      (#""x":01"#, "number"), (#""x":\#(String(repeating: "[", count: 100_000))"#, "deep"),
      (#""labels":{"a":"1","a":"2"}"#, "twice"), (#""labels":{"a":"1","\u0061":"2"}"#, "twice"),
      (#""labels":{\#((0..<10_000).map { "\"l\($0)\":\"\"" }.joined(separator: ","))}"#, "members"),
    ])
  func refusesMalformedJSON(fields: String, reason: String) throws {
    let answer = try #require(rejection(submit(fields)))
    #expect(answer.code == .malformed)
    #expect(answer.reason.contains(reason), "\(answer.reason)")
  }

  @Test("invalid UTF-8 is rejected as malformed")
  func refusesInvalidUTF8() {
    let text = Array(submit(#""labels":{"a":"?"}"#).utf8).map { $0 == UInt8(ascii: "?") ? 0xFF : $0 }
    let error = #expect(throws: Rejection.self) { try CommandDecoder.decode(text, origin: origin) }
    #expect(error?.code == .malformed && error?.reason.contains("UTF-8") == true)
  }

  @Test("a message that is too large, or has no body, is rejected")
  func refusesLargeAndMissingMessages() {
    let padding = String(repeating: " ", count: CommandDecoder.sizeLimit)
    #expect(rejection("{}" + padding)?.code == .tooLarge)
    #expect(throws: Rejection.self) { try CommandDecoder.decode(nil, origin: origin) }
  }

  @Test("a line of a batch may be a task or a command")
  func aLineOfABatchMayBeATaskOrACommand() throws {
    func line(_ text: String) throws -> Command {
      try CommandDecoder.decode(line: Array(text.utf8)) { UniqueID(high: 1, low: 1) }
    }
    #expect(try line(#"{"source":"https://a/b.mp4"}"#).taskID == UniqueID(high: 1, low: 1))
    #expect(try line(#"{"command":"pause","taskId":"\#(taskID)"}"#).taskID.description == taskID)
    #expect(throws: Rejection.self) { try line(#"{"source":"nowhere"}"#) }
  }

  /// A person can correct a line, but a program's record may come from a newer version.
  @Test("unknown fields are ignored in records and refused in lines of a batch")
  func unknownFieldsOfRecordsArePassedOver() throws {
    let text = #"{"command":"submit","x":1,"task":{"source":"https://a/b.mp4","y":2,"expect":{"z":[3]}}}"#
    #expect(try decode(text).taskID == origin.id)
    #expect(throws: Rejection.self) { try CommandDecoder.decode(line: Array(text.utf8)) { UniqueID(high: 1, low: 1) } }
  }

  @Test("every field that a suggestion may name is a known field", arguments: TaskDraft.names)
  func knowsTheNamesItNames(name: String) throws {
    let error = #expect(throws: Rejection.self) {
      try CommandDecoder.decode(line: Array(#"{"\#(name)":[[0]]}"#.utf8)) { UniqueID(high: 1, low: 1) }
    }
    #expect(error?.reason.contains("no such field") == false)
  }

  @Test(
    "mutated messages never crash the decoder, and accepted ones are encoded and decoded unchanged", arguments: 0..<20)
  func survivesAnything(round: Int) throws {
    let seed = Array(submit(#""expect":{"bytes":7},"headers":{"Referer":"\u00e9"},"labels":{"a":"b"}"#).utf8)
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<500 {
      var bytes = seed
      for _ in 0..<Int.random(in: 1...4) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[index] = .random(in: 0...255, using: &generator)
        case 1: bytes.remove(at: index)
        case 2: bytes.insert(bytes.randomElement() ?? 0, at: index)
        default: bytes.removeSubrange(index..<min(bytes.count, index + 9))
        }
      }
      guard let command = try? CommandDecoder.decode(bytes, origin: origin) else { continue }
      #expect(try CommandDecoder.decode(CommandJSON.encode(command), origin: origin) == command)
    }
  }
}
