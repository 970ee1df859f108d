import TaskCore
import Testing

@testable import reelhaul

@Suite struct BatchDecoderTests {
  private let lines = [
    #"{"source":"https://a.example/film.mp4"}"#,
    #"{"source":"ftp://a.example/film.mp4"}"#,
    #"{"command":"pause","taskId":"01990000-0000-7000-8000-000000000001"}"#,
    "nonsense",
  ].enumerated().map { LineSplitter.Line(number: $0 + 1, bytes: Array($1.utf8)) }

  @Test("correct lines become commands, and wrong lines are named")
  func takesTheGoodAndNamesTheBad() throws {
    var decoder = BatchDecoder()
    let outcome = decoder.decode(lines + [.init(number: 5, bytes: nil)])
    #expect(outcome.commands.count == 2)
    #expect(outcome.numbers == [1, 3])
    #expect(outcome.bad.map(\.number) == [2, 4, 5])
    #expect(outcome.bad[0].reason.contains("source: "))
    guard case .submit(let spec) = outcome.commands[0] else {
      Issue.record("the first line is a task")
      return
    }
    #expect(spec.destination == "storage://default/film.mp4")
  }

  /// The position of the name in the line does not matter.
  @Test(
    "a line with a command is read as a command, wherever the name stands in it",
    arguments: [
      #"{"id":"01990000-0000-7000-8000-000000000002","taskId":"01990000-0000-7000-8000-000000000001","command":"pause"}"#,
      #"{"taskId":"01990000-0000-7000-8000-000000000001","id":null,"command":"pause"}"#,
    ])
  func aCommandIsNoTask(line: String) throws {
    var decoder = BatchDecoder()
    let outcome = decoder.decode([.init(number: 1, bytes: Array(line.utf8))])
    #expect(outcome.bad == [])
    guard case .control(let control) = try #require(outcome.commands.first) else {
      Issue.record("it is a submit")
      return
    }
    #expect(control.action == .pause)
  }

  @Test(
    "unknown fields are refused with the nearest known name",
    arguments: [
      (
        #"{"source":"https://a.example/f.mp4","prioritty":5}"#,
        #"prioritty: there is no such field; did you mean "priority"?"#
      ),
      (#"{"sorce":"https://a.example/f.mp4"}"#, #"sorce: there is no such field; did you mean "source"?"#),
      (
        #"{"source":"https://a.example/f.mp4","expect":{"sha265":""}}"#,
        #"expect.sha265: there is no such field; did you mean "sha256"?"#
      ),
      (
        #"{"source":"https://a.example/f.mp4","colour":1}"#,
        "colour: there is no such field; there are id, kind, source,"
      ),
      (
        #"{"command":"pause","task_id":"01990000-0000-7000-8000-000000000001"}"#,
        #"task_id: there is no such field; did you mean "taskId"?"#
      ),
      (
        #"{"comand":"pause","taskId":"01990000-0000-7000-8000-000000000001"}"#,
        #"comand: there is no such field; did you mean "command"?"#
      ),
      (
        #"{"command":"submit","task":{"source":"https://a.example/f.mp4","queu":"a"}}"#,
        #"task.queu: there is no such field; did you mean "queue"?"#
      ),
      (
        #"{"taskId":"01990000-0000-7000-8000-000000000001","source":1,"command":"pause"}"#,
        "source: there is no such field; there are command,"
      ),
      (#"{"taskId":"01990000-0000-7000-8000-000000000001","command":"pauze"}"#, "the command is unknown"),
      (#"{"priority":1,"taskId":"01990000-0000-7000-8000-000000000001","command":"pauze"}"#, "the command is unknown"),
      (#"{"source":"https://a.example/f.mp4","prioritty":null}"#, "prioritty: there is no such field; did you mean"),
      (
        #"{"source":"https://a.example/f.mp4","expect":{"sha":null}}"#,
        "expect.sha: there is no such field; there are sha256,"
      ),
      (
        #"{"command":"submit","tsk":null,"task":{"source":"https://a.example/f.mp4"}}"#,
        #"tsk: there is no such field; did you mean "task"?"#
      ),
      (
        #"{"taskId":"01990000-0000-7000-8000-000000000001","priority":7,"command":"pause"}"#,
        "priority: there is no such field; there are command, id, taskId"
      ),
      (
        #"{"command":"submit","priority":7,"task":{"source":"https://a.example/f.mp4"}}"#,
        "priority: there is no such field; there are command, id, task"
      ),
    ])
  func unknownFieldsAreRefused(line: String, reason: String) {
    var decoder = BatchDecoder()
    let outcome = decoder.decode([.init(number: 1, bytes: Array(line.utf8))])
    #expect(outcome.commands == [])
    #expect(outcome.bad.first?.reason.hasPrefix(reason) == true, "\(outcome.bad)")
  }

  /// Errors name fields as they were written: with `task.` if there is a `task`.
  @Test(
    "an error names the field as it was written in the line",
    arguments: [
      (#"{"source":"nowhere"}"#, "source: not an absolute URL"), (#"{"kind":"download"}"#, #""source" is missing"#),
      (#"{"source":"https://a.example/f.mp4","queue":"a b"}"#, "queue: must be"),
      (#"{"command":"submit","task":{"source":"nowhere"}}"#, "task.source: not an absolute URL"),
      (#"{"command":"submit","task":{"kind":"download"}}"#, #"task: "source" is missing"#),
    ])
  func fieldsAreNamedAsTheyWereWritten(line: String, reason: String) {
    var decoder = BatchDecoder()
    let outcome = decoder.decode([.init(number: 1, bytes: Array(line.utf8))])
    #expect(outcome.bad.first?.reason.hasPrefix(reason) == true, "\(outcome.bad)")
  }

  @Test("a submit may have an id of its own: the task's id identifies it, and the command's id stands in for it")
  func aSubmitMayHaveAnIDBesideItsTasks() throws {
    let ids = ["01990000-0000-7000-8000-000000000001", "01990000-0000-7000-8000-000000000002"]
    for (own, of, result) in [(ids[0], ids[0], ids[0]), (ids[1], ids[0], ids[0]), (ids[1], nil, ids[1])] {
      let task = of.map { #""id":"\#($0)","# } ?? ""
      let line = #"{"command":"submit","id":"\#(own)","task":{\#(task)"source":"https://a.example/f.mp4"}}"#
      var decoder = BatchDecoder()
      let outcome = decoder.decode([.init(number: 1, bytes: Array(line.utf8))])
      #expect(outcome.bad == [])
      #expect(outcome.commands.map(\.taskID.description) == [result])
    }
  }

  /// All names for people, and every field that a task has.
  @Test("every known field is accepted")
  func knownFieldsAreAccepted() throws {
    let line = #"""
      {"id":"01990000-0000-7000-8000-000000000001","kind":"download","source":"https://a.example/f.mp4",
      "destination":"storage://default/f.mp4","priority":1,"queue":"q","after":[],"notBefore":"2026-01-01T00:00:00Z",
      "expect":{"sha256":null,"md5":null,"bytes":1},"ifExists":"skip","headers":{"X-Any":"1"},"maxAttempts":3,
      "retryAfter":[1],"rate":1,"credential":"c","labels":{"any":"1"},"paused":true}
      """#.filter { $0 != "\n" }
    var decoder = BatchDecoder()
    let outcome = decoder.decode([.init(number: 1, bytes: Array(line.utf8))])
    #expect(outcome.bad == [])
    #expect(outcome.commands.count == 1)
  }

  /// A worker may have a handler for the kind: the kind is reported once, and the command is sent.
  @Test("a kind that is not built in is reported once and sent")
  func aKindThatIsNotBuiltInIsReported() {
    let lines = ["noop", "donwload", "transcode", "donwload"].enumerated().map { number, kind in
      let line = #"{"kind":"\#(kind)","source":"https://a.example/f.mp4","destination":"storage://default/f.mp4"}"#
      return LineSplitter.Line(number: number + 1, bytes: Array(line.utf8))
    }
    var decoder = BatchDecoder()
    let outcome = decoder.decode(lines)
    #expect(outcome.commands.count == 4 && outcome.bad == [])
    #expect(outcome.notes.map(\.number) == [2, 3])
    #expect(outcome.notes[0].reason.hasSuffix(#"; did you mean "download"?"#), "\(outcome.notes)")
    #expect(outcome.notes[1].reason.hasPrefix(#"kind "transcode" is not built in"#), "\(outcome.notes)")
    #expect(decoder.decode(lines).notes == [])
  }

  @Test("every line without an id gets its own")
  func linesWithoutAnIDGetOneEach() {
    var decoder = BatchDecoder()
    let line = LineSplitter.Line(number: 1, bytes: Array(#"{"source":"https://a.example/film.mp4"}"#.utf8))
    let ids = decoder.decode(Array(repeating: line, count: 100)).commands.map(\.taskID)
    #expect(Set(ids).count == 100)
    #expect(ids.allSatisfy { $0.high >> 12 & 0xF == 7 && $0.low >> 62 == 2 }, "version 7")
  }

  @Test(
    "line numbers are joined to ranges",
    arguments: [
      ([3], "line 3"), ([3, 4, 5], "lines 3-5"), ([1, 3, 4, 9], "lines 1, 3-4, 9"),
    ])
  func manyLinesAreNamedShortly(numbers: [Int], text: String) {
    #expect(LineRanges(numbers).description == text)
  }
}
