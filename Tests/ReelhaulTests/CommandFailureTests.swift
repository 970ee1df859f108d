import ReelhaulPostgres
import TaskStore
import Testing

@testable import reelhaul

@Suite struct CommandFailureTests {
  @Test(
    "a hint says what a server lacks that answers",
    arguments: [
      (PostgresError.Lack?.none, "Start it, or correct --postgres"), (.writes, "Name the primary server in --postgres"),
      (.connections, "Raise max_connections"), (.resources, "Its log says more."),
    ])
  func theHintSaysWhatIsLacking(_ lack: PostgresError.Lack?, _ words: String) throws {
    let failure = CommandFailure(StoreError.unavailable("no", lack: lack))
    #expect(failure.code == .unreachable && failure.message.hasSuffix(": no"))
    let hint = try #require(failure.hint)
    #expect(hint.hasPrefix(words) && (lack == nil || !hint.contains("Start it")), "\(hint)")
    #expect((failure.unanswered == nil) == (lack != nil))
  }

  @Test("a refused connection says the same as a refused statement")
  func connectionsSayTheSame() {
    let full = PostgresError(.connection, "sorry, too many clients already", sqlState: "53300")
    #expect(CommandFailure(full).hint == CommandFailure(StoreError.unavailable("no", lack: .connections)).hint)
    let readOnly = PostgresError(.server, "cannot execute CREATE TABLE", sqlState: "25006")
    #expect(CommandFailure(readOnly).hint == CommandFailure(StoreError.unavailable("no", lack: .writes)).hint)
  }
}
