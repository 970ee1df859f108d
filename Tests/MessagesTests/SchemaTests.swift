import ReelhaulCodec
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import ReelhaulMessages

/// docs/schemas against what is written, and what is taken.
@Suite struct SchemaTests {
  private static let id = "01a2100f-2fb2-7e30-9907-dbb8bb0ee475"
  private static let hex = String(repeating: "0f", count: 32)

  private static func full() throws -> TaskSpec {
    let json = """
      {"id":"\(id)","kind":"upload","source":"storage://default/a","destination":"https://a.example/b?k=1","priority":-5,
      "queue":"films","after":["\(id.dropLast())0"],"notBefore":"2026-01-31T20:00:00Z",
      "expect":{"sha256":"\(hex)","md5":"\(hex.prefix(32))","bytes":7},"ifExists":"skip","headers":{"A":"1"},
      "maxAttempts":3,"retryAfter":[1,60],"rate":1000,"connections":2,"credential":"c","labels":{"title":"x y"},
      "paused":true,"allowUnframed":true,"parameters":{"a":[1]},"notify":"https://a.example/hook",
      "traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=b"}
      """
    return try TaskSpecJSON.decode(Array(json.utf8))
  }

  @Test("what is written fits its schema, with every field and with none") func written() throws {
    let (full, plain) = (try Self.full(), TaskSpec(id: .random(), kind: .noop, source: "noop://a/"))
    let at = Timestamp(microseconds: 1_700_000_000_123_456)
    var values: [(String, [UInt8])] = []
    for spec in [full, plain] {
      values.append(("command", CommandJSON.encode(.submit(spec))))
      var task = TaskDocument(spec: spec, state: .failed, createdAt: at)
      task.error = TaskFailure(code: .destinationExists, message: "it is there", class: .fail)
      task.sha256 = [UInt8](repeating: 7, count: 32)
      (task.bytesTotal, task.rate, task.worker) = (10, 1, .random())
      (task.startedAt, task.finishedAt, task.runAt) = (at, at, at)
      task.output = Array(#"{"bytes":10}"#.utf8)
      for document in [task, TaskDocument(spec: spec, state: .queued, createdAt: at)] {
        values.append(("task", TaskDocumentJSON.encode(document)))
        for kind in TaskEvent.Kind.allCases {
          let event = TaskEvent(
            taskID: spec.id, sequence: 1, kind: kind, at: at, task: kind == .removed ? nil : document)
          values.append(("event", TaskEventJSON.encode(event)))
        }
      }
      for total in [nil, Int64(10)] {
        let sample = ProgressSample(taskID: spec.id, epoch: 1, bytesDone: 5, bytesTotal: total, rate: 1)
        values.append(("progress", ProgressJSON.encode(sample, at: at)))
      }
    }
    let actions: [ControlAction] = [
      .pause, .resume, .cancel, .retry, .remove(files: false), .remove(files: true), .prioritize(7),
    ]
    for action in actions {
      values.append(("command", CommandJSON.encode(.control(.init(id: .random(), taskID: plain.id, action: action)))))
    }
    for (value, problem) in zip(values, try MessageSchemas.problems(values)) where problem != nil {
      Issue.record("\(value.0) \(String(decoding: value.1, as: UTF8.self)): \(problem ?? "")")
    }
  }

  @Test("a member that a schema does not name is noticed") func unknown() throws {
    let plain = TaskSpec(id: .random(), kind: .noop, source: "noop://a/")
    let at = Timestamp(microseconds: 0)
    let document = TaskDocumentJSON.encode(TaskDocument(spec: plain, state: .queued, createdAt: at))
    let event = TaskEvent(taskID: plain.id, sequence: 1, kind: .removed, at: at, task: nil)
    let sample = ProgressSample(taskID: plain.id, epoch: 1, bytesDone: 5, bytesTotal: nil, rate: 1)
    let values: [(schema: String, json: [UInt8])] = [
      ("command", CommandJSON.encode(.submit(plain))), ("task-spec", TaskSpecJSON.encode(plain)), ("task", document),
      ("event", TaskEventJSON.encode(event)), ("progress", ProgressJSON.encode(sample, at: at)),
    ]
    let more = values.map { (schema: $0.schema, json: Array(#"{"new":1,"#.utf8) + $0.json.dropFirst()) }
    #expect(try MessageSchemas.problems(values).allSatisfy { $0 == nil })
    #expect(try MessageSchemas.problems(more).allSatisfy { $0?.isEmpty == false })
  }

  /// Values for any member. What only a meaning decides (whether a host may exist, whether a day is in the calendar, whether
  /// a header is a secret) is not among them: no schema says it.
  private static let pool: [String] = [
    "null", "true", "false", "0", "-1", "1", "7", "64", "65", "100", "101", "1000", "1001", "-1001", "86401", "1.5",
    "5.0", "1.5e1", "1E2", "100e-2", "1e19", "-1e-2",
    "99999999999999999999", #""""#, #""x""#, #""a b""#, #""a\u0001""#, #""x.y-z_1""#, "\"\(id)\"", "\"\(hex)\"",
    "\"\(hex.prefix(32))\"", "\"\(hex.uppercased())\"", "\"\(String(repeating: "n", count: 33))\"",
    "\"\(String(repeating: "n", count: 101))\"", #""fail""#, #""replace""#, #""2026-01-31T20:00:00Z""#,
    #""2026-01-31T20:00:00.5+01:00""#, #""https://a.example/hook?k=v""#, "[]", "[5]", "[5,86401]", "[5.0]", #"["x"]"#,
    "[\"\(id.dropLast())0\"]", "[\"\(id.dropLast())0\",\"\(id.dropLast())0\"]", "{}", #"{"a":"b"}"#, #"{"a b":"c"}"#,
    #"{"a":1}"#, #"{"a":null}"#, #"{"":"x"}"#, #"{"bytes":5}"#, #"{"bytes":1e6}"#, #"{"bytes":-1}"#,
    "{\"sha256\":\"\(hex)\"}",
    #"{"sha256":"x"}"#, "{\"md5\":\"\(hex.prefix(32))\",\"bytes\":null}", #"{"size":1}"#,
  ]

  private static func object(_ members: [(String, String)]) -> String {
    "{" + members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ",") + "}"
  }

  @Test("the schema of commands takes and refuses what the decoder takes and refuses", arguments: [UInt64(1), 2])
  func agreement(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var texts: [String] = []
    let names = TaskFieldTable.tasks.names.filter { $0 != "kind" }
    for name in names + ["unknown"] {
      for value in Self.pool { texts.append(Self.submit([(name, value)], &random)) }
    }
    for _ in 0..<2000 {
      let some = names.shuffled(using: &random).prefix(Int.random(in: 0...3, using: &random))
      texts.append(Self.submit(some.map { ($0, Self.pool.randomElement(using: &random) ?? "") }, &random))
    }
    for command in ["pause", "resume", "cancel", "retry", "remove", "prioritize", "dance", ""] {
      for name in ["id", "taskId", "priority", "files", "task", "reason"] {
        for value in Self.pool {
          var members = [("command", "\"\(command)\""), ("taskId", "\"\(Self.id)\""), ("priority", "1")]
          if command != "prioritize" { members.removeLast() }
          members.removeAll { $0.0 == name }
          if Bool.random(using: &random) { members.append((name, value)) } else { members.insert((name, value), at: 0) }
          texts.append(Self.object(members))
        }
      }
    }
    texts += ["{}", "[]", "null", #"{"command":"submit"}"#, #"{"command":"pause"}"#, #"{"command":null}"#]
    let problems = try MessageSchemas.problems(texts.map { ("command", Array($0.utf8)) })
    var differences = 0
    for (text, problem) in zip(texts, problems) {
      var reason: String?
      do throws(Rejection) {
        _ = try CommandDecoder.decode(line: Array(text.utf8)) { .random() }
      } catch {
        reason = error.reason
      }
      guard (reason == nil) != (problem == nil) else { continue }
      differences += 1
      if differences <= 20 {
        Issue.record("\(text): the decoder: \(reason ?? "takes it"); the schema: \(problem ?? "takes it")")
      }
    }
    #expect(differences == 0)
  }

  /// A submit of a kind of its own, whose URLs may be any texts.
  private static func submit(_ members: [(String, String)], _ random: inout SplitMix64) -> String {
    var task = [("kind", "\"noop\""), ("source", "\"noop://a/\"")].filter { known in
      !members.contains { $0.0 == known.0 }
    }
    task += members
    var command = [("command", "\"submit\""), ("task", object(task))]
    if Bool.random(using: &random) { command.reverse() }
    return object(command)
  }
}
