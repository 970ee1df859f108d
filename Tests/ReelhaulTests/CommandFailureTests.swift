import ReelhaulPostgres
import TaskStore
import Testing

@testable import reelhaul

@Suite struct CommandFailureTests {
  @Test(
    "a hint says what a server lacks that answers",
    arguments: [
      ("connection", "Start it, or correct --postgres"), ("25006", "Name the primary server in --postgres"),
      ("53300", "Raise max_connections"), ("53100", "Its log says more."), ("XX000", "Its log says more."),
    ])
  func theHintSaysWhatIsLacking(_ cause: String, _ words: String) throws {
    let error = StoreError.unavailable("no", cause: cause)
    let failure = CommandFailure(error)
    #expect(failure.code == .unreachable && failure.message.hasSuffix(": no"))
    let hint = try #require(failure.hint)
    #expect(hint.hasPrefix(words) && (error.lack == nil || !hint.contains("Start it")), "\(hint)")
    #expect((failure.unanswered == nil) == (error.lack != nil))
  }

  @Test("a refused connection says the same as a refused statement")
  func connectionsSayTheSame() {
    let full = PostgresError(.connection, "sorry, too many clients already", sqlState: "53300")
    #expect(CommandFailure(full).hint == CommandFailure(StoreError.unavailable("no", cause: "53300")).hint)
    let readOnly = PostgresError(.server, "cannot execute CREATE TABLE", sqlState: "25006")
    #expect(CommandFailure(readOnly).hint == CommandFailure(StoreError.unavailable("no", cause: "25006")).hint)
  }
}
