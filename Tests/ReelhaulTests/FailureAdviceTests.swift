import TaskCore
import Testing

@testable import reelhaul

@Suite struct FailureAdviceTests {
  private func task(_ state: TaskState, _ code: String?, ifExists: IfExists = .fail) -> TaskDocument {
    var spec = TaskSpec(id: UniqueID(high: 0, low: 99), kind: .download, source: "https://a.example/f.mp4")
    spec.ifExists = ifExists
    var task = TaskDocument(spec: spec, state: state, createdAt: Timestamp(microseconds: 0))
    task.error = code.map { TaskFailure(code: $0, message: "…", class: .fail) }
    return task
  }

  /// Another attempt by itself meets the same again.
  @Test(arguments: [
    ("destination_exists", "--if-exists skip or replace, or another --to"), ("destination_invalid", "another --to"),
    ("digest_mismatch", "--sha256 or --md5 was wrong"), ("size_mismatch", "--bytes was wrong"),
    ("length_unknown", "with --bytes"), ("address_refused", "REELHAUL_ALLOW_NETWORKS; then 'reelhaul retry"),
    ("credential_refused", "REELHAUL_CREDENTIALS"), ("http_404", "URL was wrong"),
    ("certificate_untrusted", "REELHAUL_CA_FILE"),
  ])
  func whatIsToBeDoneFirstIsSaid(_ code: String, _ words: String) throws {
    let advice = try #require(FailureAdvice.of(task(.failed, code)))
    #expect(advice.contains(words), "\(advice)")
    #expect(TaskDetails.lines(TaskReport(task: task(.failed, code), waits: nil)).contains { $0.hasSuffix(advice) })
  }

  @Test func aFileThatWasToBeSkippedIsNotSkippedTheNextTime() throws {
    let advice = try #require(FailureAdvice.of(task(.failed, "destination_exists", ifExists: .skip)))
    #expect(advice.contains("--if-exists replace"), "\(advice)")
  }

  @Test(arguments: TaskState.allCases)
  func onlyWhatCanBeRetriedIsToBe(_ state: TaskState) {
    let retry = "'reelhaul retry \(UniqueID(high: 0, low: 99))' tries again."
    #expect(FailureAdvice.of(task(state, "http_503")) == ([.failed, .canceled].contains(state) ? retry : nil))
  }

  @Test func whoWaitsForACredentialIsToldWhere() {
    #expect(FailureAdvice.of(task(.queued, "credential_unknown"))?.contains("REELHAUL_CREDENTIALS") == true)
  }
}
