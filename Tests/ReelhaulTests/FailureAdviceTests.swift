import TaskAdvice
import TaskCore
import Testing

@testable import reelhaul

@Suite struct FailureAdviceTests {
  private func task(_ state: TaskState, _ code: TaskFailure.Code?, ifExists: IfExists = .fail) -> TaskDocument {
    var spec = TaskSpec(id: UniqueID(high: 0, low: 99), kind: .download, source: "https://a.example/f.mp4")
    spec.ifExists = ifExists
    var task = TaskDocument(spec: spec, state: state, createdAt: Timestamp(microseconds: 0))
    task.error = code.map { TaskFailure(code: $0, message: "…", class: .fail) }
    return task
  }

  /// Another attempt would fail with the same error.
  @Test(
    "the advice names what must change before a retry",
    arguments: [
      (TaskFailure.Code.destinationExists, "--if-exists skip or replace, or another --to"),
      (.destinationInvalid, "another --to"),
      (.digestMismatch, "--sha256 or --md5 was wrong"), (.sizeMismatch, "--bytes was wrong"),
      (.lengthUnknown, "with --bytes"), (.lengthUnknown, "with --allow-unframed"), (.fetchesDiffer, "with --bytes"),
      (.sourceChanging, "with --sha256"),
      (.addressRefused, "REELHAUL_ALLOW_NETWORKS; then 'reelhaul retry"),
      (.credentialRefused, "REELHAUL_CREDENTIALS"), (.credentialRefused, "its host or its s3 form"),
      (.credentialNeeded, "with --credential"),
      (.http(404), "URL was wrong"), (.init(rawValue: "s3_no_such_key"), "URL was wrong"),
      (.certificateUntrusted, "REELHAUL_CA_FILE"), (.isDirectory, "with --recursive"),
      (.certificateExpired, "the worker's clock is right"),
      (.parametersInvalid, "Submit a new task with right --parameters"),
      (.lostRepeatedly, "logs of the workers"),
    ])
  func adviceNamesTheRemedy(_ code: TaskFailure.Code, _ words: String) throws {
    let advice = try #require(FailureAdvice.of(task(.failed, code)))
    #expect(advice.contains(words), "\(advice)")
    #expect(TaskDetails.lines(TaskReport(task: task(.failed, code), waits: nil)).contains { $0.hasSuffix(advice) })
  }

  @Test("a task with wrong parameters is not advised to retry")
  func wrongParametersAreNotRetried() {
    #expect(FailureAdvice.of(task(.failed, .parametersInvalid))?.contains("retry") == false)
  }

  @Test("who does not know whether a file has arrived is advised to look, not to send it again")
  func aLostAnswerIsLookedFor() throws {
    var task = task(.failed, .answerLost)
    task.spec.kind = .upload
    for (destination, place) in [("https://a.example/f.mp4", "server"), ("s3://films/f.mp4", "store")] {
      task.spec.destination = destination
      let advice = try #require(FailureAdvice.of(task))
      #expect(advice.hasPrefix("Look at the \(place) ") && !advice.contains("reelhaul retry"), "\(advice)")
    }
  }

  @Test("the advice about an address that hands out credentials is a warning and names no setting")
  func anAddressWithCredentialsIsNotToBeAllowed() throws {
    let task = task(.failed, .addressGivesCredentials)
    let advice = try #require(FailureAdvice.of(task))
    #expect(advice.hasPrefix("Check where the URL came from"), "\(advice)")
    #expect(TaskDetails.lines(TaskReport(task: task, waits: nil)).allSatisfy { !$0.contains("REELHAUL_") })
  }

  @Test("after a refused skip the advice offers only replace")
  func aFileThatWasToBeSkippedIsNotSkippedTheNextTime() throws {
    let advice = try #require(FailureAdvice.of(task(.failed, .destinationExists, ifExists: .skip)))
    #expect(advice.contains("--if-exists replace"), "\(advice)")
  }

  @Test("only failed and canceled tasks get the advice to retry", arguments: TaskState.allCases)
  func onlyFailedAndCanceledTasksAreToBeRetried(_ state: TaskState) {
    let retry = "'reelhaul retry \(UniqueID(high: 0, low: 99))' tries again."
    #expect(FailureAdvice.of(task(state, .http(503))) == ([.failed, .canceled].contains(state) ? retry : nil))
  }

  @Test("a task that waits for a credential names the file for it")
  func aMissingCredentialIsExplained() {
    let waiting = FailureAdvice.of(task(.queued, .credentialUnknown))
    #expect(waiting?.contains("REELHAUL_CREDENTIALS file; the task then continues") == true)
    // A paused task does not.
    let paused = FailureAdvice.of(task(.paused, .credentialUnknown))
    #expect(paused?.contains("REELHAUL_CREDENTIALS file; then resume") == true)
  }

  @Test(
    "the advice for an own kind names no options that its handler cannot see",
    arguments: [TaskFailure.Code.destinationExists, .digestMismatch, .sizeMismatch, .fetchesDiffer])
  func ownKinds(_ code: TaskFailure.Code) throws {
    var task = task(.failed, code)
    task.spec.kind = TaskKind(rawValue: "transcode")
    let advice = try #require(FailureAdvice.of(task))
    #expect(advice.contains("retry") && ["--if-exists", "--sha256", "--bytes"].allSatisfy { !advice.contains($0) })
  }
}
