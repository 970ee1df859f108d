import TaskCore
import Testing

@Suite struct TaskFailureTests {
  @Test("a status of HTTP is a number on both ways", arguments: [100, 401, 404, 503, 599])
  func statusIsANumber(_ status: Int) {
    #expect(TaskFailure.Code.http(status).rawValue == "http_\(status)")
    #expect(TaskFailure.Code(rawValue: "http_\(status)").httpStatus == status)
  }

  @Test(
    "other words have no status",
    arguments: ["", "http", "http_", "http_+404", "http_0404", "http_x", "xhttp_404", "disk_full"])
  func otherWordsHaveNoStatus(_ word: String) {
    #expect(TaskFailure.Code(rawValue: word).httpStatus == nil)
  }

  @Test("a word of somebody's own is kept as it is")
  func isOpen() {
    #expect("\(TaskFailure.Code(rawValue: "transcode_failed"))" == "transcode_failed")
    #expect(TaskFailure.Code(rawValue: "disk_full") == .diskFull)
  }
}
