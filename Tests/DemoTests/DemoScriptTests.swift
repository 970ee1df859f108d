import TaskCore
import Testing

@testable import Demo

@Suite struct DemoScriptTests {
  private let killed = UniqueID(high: 0, low: 1)
  private let paused = UniqueID(high: 0, low: 2)
  private let canceled = UniqueID(high: 0, low: 3)
  private let worker = UniqueID(high: 9, low: 9)

  private func document(_ id: UniqueID, _ state: TaskState, done: Int64) -> TaskDocument {
    TaskDocument(
      spec: TaskSpec(id: id, kind: .download, source: "https://a.example/x"), state: state, bytesTotal: 100,
      bytesDone: done, worker: worker, createdAt: Timestamp(microseconds: 0))
  }

  private func script() -> DemoScript {
    DemoScript([killed: .killed, paused: .paused, canceled: .canceled])
  }

  @Test("the demo waits until its tasks have bytes")
  func waitsUntilSomethingIsThere() {
    var script = script()
    #expect(script.look(at: [killed, paused, canceled].map { document($0, .running, done: 5) }) == [])
    #expect(script.look(at: [killed, paused, canceled].map { document($0, .queued, done: 50) }) == [])
    #expect(script.missing.count == 3)
  }

  @Test("the demo pauses, cancels, kills and resumes once, in this order")
  func doesEverythingOnce() {
    var script = script()
    let running = [killed, paused, canceled].map { document($0, .running, done: 50) }
    #expect(script.look(at: running) == [.pause(paused), .cancel(canceled)])
    #expect(script.look(at: running) == [], "the killed worker may have to carry out both")
    let steered = [running[0], document(paused, .paused, done: 60), document(canceled, .canceled, done: 50)]
    #expect(script.look(at: steered) == [.kill(worker: worker, task: killed)])
    #expect(script.look(at: steered) == [])
    var resumed: [DemoScript.Action] = []
    for _ in 0..<30 { resumed += script.look(at: [document(paused, .paused, done: 60)]) }
    #expect(resumed == [.resume(paused)])
    #expect(script.missing == [])
    #expect(script.complaints == [])
  }

  @Test("the demo kills the worker of each task that is for it, once")
  func killsForEach() {
    let other = UniqueID(high: 0, low: 4)
    var script = DemoScript([killed: .killed, other: .killed])
    let running = document(killed, .running, done: 50)
    #expect(script.look(at: [running, document(other, .blocked, done: 0)]) == [.kill(worker: worker, task: killed)])
    #expect(script.missing.contains("no worker was killed during a transfer"))
    #expect(script.look(at: [running, document(other, .running, done: 50)]) == [.kill(worker: worker, task: other)])
    #expect(!script.missing.contains("no worker was killed during a transfer"))
  }

  @Test("the demo notices bytes that move during a pause")
  func noticesBytesThatMoveInAPause() {
    var script = script()
    _ = script.look(at: [document(paused, .running, done: 50)])
    _ = script.look(at: [document(paused, .paused, done: 50)])
    _ = script.look(at: [document(paused, .paused, done: 51)])
    #expect(script.complaints.count == 1)
  }
}
