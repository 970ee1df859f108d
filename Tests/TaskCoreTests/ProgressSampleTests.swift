import TaskCore
import Testing

@Suite struct ProgressSampleTests {
  private static let table: [(done: Int64, total: Int64?, rate: Int64, eta: Int64?)] = [
    (0, 10, 3, 4), (1, 10, 3, 3), (10, 10, 3, 0), (12, 10, 3, 0), (0, 0, 3, 0), (0, .max, .max, 1), (0, 10, 0, nil),
    (0, nil, 3, nil),
  ]

  @Test("the time left follows from bytes and rate, and is unknown while publishing", arguments: table)
  func tellsTheTimeLeft(done: Int64, total: Int64?, rate: Int64, eta: Int64?) {
    let id = UniqueID(high: 1, low: 1)
    #expect(ProgressSample(taskID: id, epoch: 1, bytesDone: done, bytesTotal: total, rate: rate).eta == eta)
    let spec = TaskSpec(id: id, kind: .noop, source: "noop:", destination: nil)
    var document = TaskDocument(
      spec: spec, state: .running, bytesTotal: total, bytesDone: done, rate: rate,
      createdAt: Timestamp(microseconds: 0))
    #expect(document.eta == eta)
    document.state = .publishing
    #expect(document.eta == nil)
  }
}
