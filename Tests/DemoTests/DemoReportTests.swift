import TaskCore
import Testing

@testable import Demo

@Suite struct DemoReportTests {
  private func line(
    _ role: DemoFilm.Role, _ state: TaskState = .succeeded, file: [UInt8]? = [1], task: [UInt8]? = [1],
    sent: Int64 = 100, workers: [String] = ["a", "b"]
  ) -> DemoReport.Line {
    DemoReport.Line(
      film: DemoFilm(name: "x", size: 100, role: role, kind: .download),
      task: TaskDocument(
        spec: TaskSpec(id: UniqueID(high: 0, low: 1), kind: .download, source: ""), state: state,
        createdAt: Timestamp(microseconds: 0), sha256: task),
      originSize: 100, originSHA256: [1], fileSHA256: file, sent: sent, workers: workers)
  }

  @Test("the report is good if every line is correct")
  func holdsWhereAllIsRight() {
    let twice = line(.killed, sent: 101 + 128 << 20, workers: ["a", "b", "c"])
    let lines = [line(.plain), line(.paused), line(.killed, sent: 150), twice, line(.canceled, .canceled, file: nil)]
    #expect(DemoReport(lines: lines, complaints: []).isGood)
    #expect(!DemoReport(lines: lines, complaints: ["no"]).isGood)
  }

  @Test("the report notices every kind of wrong line")
  func noticesWhatIsWrong() {
    let wrong = [
      line(.plain, .failed), line(.plain, file: nil), line(.plain, file: [2]), line(.plain, task: [2]),
      line(.canceled), line(.canceled, .canceled), line(.killed, sent: 101 + 128 << 20), line(.killed, workers: ["a"]),
    ]
    for line in wrong { #expect(line.complaint != nil) }
  }

  @Test("the bytes that the origin sent are summed for each file")
  func sumsWhatTheOriginSent() {
    #expect(OriginLog.sent("/a.mp4 10\n/b.mp4 5\nbroken\n/a.mp4 7\n") == ["a.mp4": 17, "b.mp4": 5])
  }
}
