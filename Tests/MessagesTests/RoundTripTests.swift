import ReelhaulCodec
import TaskCore
import Testing

@testable import ReelhaulMessages

private let id = UniqueID(high: 0x019a_df3e_5a00_7cc1, low: 0x9d3e_6d2f_0a7e_4b11)
private let other = UniqueID(high: 0x019a_df3e_5a00_7cc2, low: 0x9d3e_6d2f_0a7e_4b12)

let fullSpec = TaskSpec(
  id: id, kind: .download, source: "https://video.example/a%20b.mp4?sig=secret&part",
  destination: "storage://default/ü.mp4",
  priority: -7, queue: "tenant-1", after: [other], notBefore: Timestamp(microseconds: 1_790_000_000_123_456),
  expect: Expectation(sha256: Array(0..<32), md5: Array(0..<16), bytes: 1 << 40), ifExists: .replace,
  headers: [HeaderField(name: "Accept", value: "video/*"), HeaderField(name: "Referer", value: "https://a/\"b\"")],
  retry: RetryPolicy(maxAttempts: 3, intervals: [1, 60]), rate: 1_000_000, credential: "cdn",
  labels: ["title": "A \"film\"\n", "n": "1"], paused: true,
  parameters: Array(#"{"preset":"fast","steps":[1,2.50,{"a b":null}]}"#.utf8))

struct RoundTripTests {
  @Test(
    "a task's specification is decoded as it was encoded",
    arguments: [
      fullSpec, TaskSpec(id: id, kind: .noop, source: ""), TaskSpec(id: id, kind: .delete, source: "storage://a/b"),
    ])
  func specs(spec: TaskSpec) throws {
    #expect(try TaskSpecJSON.decode(TaskSpecJSON.encode(spec)) == spec)
    // What came in a message within its limit may be longer as a store writes it.
    let space = [UInt8](repeating: UInt8(ascii: " "), count: CommandDecoder.sizeLimit)
    #expect(try TaskSpecJSON.decode(TaskSpecJSON.encode(spec) + space) == spec)
    #expect(try TaskSpecJSON.read(TaskSpecJSON.encode(spec) + space) == spec)
  }

  @Test(
    "control commands are decoded as they were encoded",
    arguments: [ControlAction.pause, .resume, .cancel, .retry, .remove, .remove(files: true), .prioritize(-1000)])
  func controls(action: ControlAction) throws {
    let command = Command.control(Command.Control(id: other, taskID: id, action: action))
    #expect(try CommandDecoder.decode(CommandJSON.encode(command)) { UniqueID(high: 0, low: 0) } == command)
  }

  @Test("a submit is decoded as it was encoded")
  func submits() throws {
    let command = Command.submit(fullSpec)
    #expect(try CommandDecoder.decode(CommandJSON.encode(command)) { other } == command)
  }

  private var document: TaskDocument {
    TaskDocument(
      spec: fullSpec, state: .running, bytesTotal: 1000, bytesDone: 400, rate: 7, attempt: 2, worker: other, epoch: 3,
      generation: 1, sequence: 9, createdAt: Timestamp(microseconds: 1), startedAt: Timestamp(microseconds: 2),
      error: TaskFailure(code: .http(503), message: "busy", class: .retry))
  }

  @Test("a task's document has every documented field")
  func documentsHaveEveryFieldOfTheContract() throws {
    let bare = TaskDocument(
      spec: TaskSpec(id: id, kind: .noop, source: ""), state: .queued, createdAt: Timestamp(microseconds: 0))
    for bytes in [TaskDocumentJSON.encode(document), TaskDocumentJSON.encode(bare)] {
      let text = String(decoding: bytes, as: UTF8.self)
      for field in [
        "id", "kind", "state", "priority", "queue", "source", "destination", "bytesTotal", "bytesDone", "rate", "eta",
        "attempt", "maxAttempts", "worker", "epoch", "generation", "createdAt", "startedAt", "finishedAt", "runAt",
        "digest", "error", "after", "labels", "parameters",
      ] { #expect(text.contains("\"\(field)\":")) }
    }
  }

  @Test("a task's document hides signatures in URLs, and is decoded as it was encoded")
  func documentsHideSignaturesAndComeBack() throws {
    let bytes = TaskDocumentJSON.encode(document)
    #expect(!String(decoding: bytes, as: UTF8.self).contains("secret"))
    let back = try TaskDocumentJSON.decode(bytes)
    #expect(back.spec.source == "https://video.example/a%20b.mp4?sig=***&***")
    #expect(TaskDocumentJSON.encode(back) == bytes)
    #expect(back.eta == 86)
    var other = document
    other.spec.destination = "https://a/b?sig=secret"
    #expect(try TaskDocumentJSON.decode(TaskDocumentJSON.encode(other)).spec.destination == "https://a/b?sig=***")
  }

  @Test("an event is decoded as it was encoded, and its id depends only on task and sequence")
  func events() throws {
    let event = TaskEvent(taskID: id, sequence: 9, kind: .succeeded, at: Timestamp(microseconds: 5), task: nil)
    #expect(try TaskEventJSON.decode(TaskEventJSON.encode(event)) == event)
    var asked = event
    asked.actor = "cli:anna@mill"
    #expect(try TaskEventJSON.decode(TaskEventJSON.encode(asked)) == asked)
    var next = event
    next.sequence = 10
    #expect(next.id != event.id)
    next.sequence = 9
    next.kind = .failed
    #expect(next.id == event.id)
  }

  @Test("a progress sample has the documented form, and is decoded as it was encoded")
  func progress() throws {
    let sample = ProgressSample(taskID: id, epoch: 2, bytesDone: 10, bytesTotal: 30, rate: 7)
    let bytes = ProgressJSON.encode(sample, at: Timestamp(microseconds: 0))
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"taskId":"019adf3e-5a00-7cc1-9d3e-6d2f0a7e4b11","epoch":2,"bytesDone":10,"bytesTotal":30,"rate":7,"#
        + #""eta":3,"at":"1970-01-01T00:00:00.000000Z"}"#)
    #expect(try ProgressJSON.decode(bytes).sample == sample)
  }
}
