import CommandLineKit
import ReelhaulSystem
import TaskCore
import TaskStore
import Testing

@testable import reelhaul

@Suite struct ControlCommandTests {
  private func arguments(_ words: [String]) throws -> Arguments {
    let invocation = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
    guard case .run(let arguments) = invocation else { throw UsageError("no command to run") }
    return arguments
  }

  @Test("a task that is named twice gets one command")
  func namedTwiceIsOneTask() {
    let ids = (1...3).map { UniqueID(high: 0, low: $0) }
    #expect(ControlCommand.distinct([ids[2], ids[0], ids[2], ids[1], ids[0]]) == [ids[2], ids[0], ids[1]])
  }

  @Test("two values of one label are refused, by bulk commands and by lists")
  func twoValuesOfALabel() throws {
    func arguments(_ words: String) throws -> Arguments {
      try self.arguments(words.split(separator: " ").map(String.init))
    }
    #expect(throws: UsageError.self) { try OperationFilter(try arguments("remove --all --label a=1 --label a=2")) }
    #expect(try OperationFilter(try arguments("remove --all --label a=1 --label a")).labels == ["a=1", "a"])
    #expect(throws: UsageError.self) { try TaskFilter(try arguments("list --label a=1 --label a=2")) }
    #expect(throws: UsageError.self) { try TaskFilter(try arguments("list --label =2")) }
    let labels = try TaskFilter(try arguments("list --label a=1 --label a --label b --label c=")).labels
    #expect(labels == ["a": "1", "b": nil, "c": ""])
  }

  /// What is forgotten sends the command to more tasks.
  @Test("bulk commands keep every option that selects tasks") func everyOptionSelects() throws {
    let filter = try OperationFilter(
      arguments([
        "cancel", "--all", "--state", "paused", "--state", "failed", "--queue", "b", "--queue", "a", "--kind", "noop",
        "--kind", "copy", "--host", "B.example", "--host", "a.example", "--code", "http_503", "--code", "http_404",
        "--label", "b", "--label", "a=1", "--text", "show", "--since", "2026-01-31T20:00:00Z", "--before",
        "2026-02-01T20:00:00Z",
      ]))
    #expect(filter.states == [.failed, .paused])
    #expect(filter.queues == ["a", "b"])
    #expect(filter.kinds == [.copy, .noop])
    #expect(filter.hosts == ["a.example", "b.example"])
    #expect(filter.codes == ["http_404", "http_503"])
    #expect(filter.labels == ["b", "a=1"])
    #expect(filter.text == "show")
    #expect(filter.after == Timestamp("2026-01-31T20:00:00Z"))
    #expect(filter.before == Timestamp("2026-02-01T20:00:00Z"))
  }

  @Test("bulk commands select by age as lists do, and only with --all") func ages() async throws {
    let since = try Timestamp(rfc3339: "2026-01-31T20:00:00Z")
    for name in ["pause", "resume", "cancel", "retry", "remove", "prioritize"] {
      let options = ["--since", "2026-01-31T20:00:00Z", "--before", "2h"]
      let filter = try OperationFilter(try arguments([name, "--all"] + options))
      let listed = try TaskFilter(try arguments(["list"] + options))
      let (before, ofList) = try (#require(filter.before), #require(listed.createdBefore))
      #expect(filter.after == since && listed.createdAfter == since)
      #expect(abs(before.microseconds - ofList.microseconds) < 60_000_000)
      #expect(abs(Clocks.realtimeMicroseconds() - before.microseconds - 7_200_000_000) < 60_000_000)
    }
    // In a script it may be a variable that is not set.
    for wrong in ["", "soon"] {
      #expect(throws: UsageError.self) { try OperationFilter(try arguments(["remove", "--all", "--before", wrong])) }
    }
    let long = String(repeating: "a", count: 1100)
    for wrong in [["--host", ""], ["--host", "a.example", "--host", ""], ["--text", long], ["--code", long + long]] {
      #expect(throws: UsageError.self) { try OperationFilter(try arguments(["cancel", "--all"] + wrong)) }
    }
    for option in ["--since", "--before"] {
      let context = Context(try arguments(["remove", option, "1d", "\(UniqueID(high: 1, low: 2))"]), environment: [:])
      let error = await #expect(throws: UsageError.self) { try await ControlCommand(.cancel, context).run() }
      #expect(error?.message == "\(option) needs --all")
    }
  }

  /// `--text "$SHOW"` of a script in which SHOW is not set.
  @Test("an empty --text is refused, because every task has it", arguments: ["--text", "--queue a --text"])
  func anEmptyTextSelectsNothing(_ options: String) throws {
    func filter(_ text: String) throws -> OperationFilter {
      let words = "remove --all --files \(options)".split(separator: " ").map(String.init)
      return try OperationFilter(arguments(words + [text]))
    }
    #expect(throws: UsageError.self) { try filter("") }
    #expect(try filter("show").text == "show")
  }
}
