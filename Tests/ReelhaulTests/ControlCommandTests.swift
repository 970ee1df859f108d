import CommandLineKit
import TaskCore
import TaskStore
import Testing

@testable import reelhaul

@Suite struct ControlCommandTests {
  @Test("a task that is named twice gets one command")
  func namedTwiceIsOneTask() {
    let ids = (1...3).map { UniqueID(high: 0, low: $0) }
    #expect(ControlCommand.distinct([ids[2], ids[0], ids[2], ids[1], ids[0]]) == [ids[2], ids[0], ids[1]])
  }

  @Test("two values of one label are refused, by bulk commands and by lists")
  func twoValuesOfALabel() throws {
    func arguments(_ words: String) throws -> Arguments {
      let words = words.split(separator: " ").map(String.init)
      let invocation = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
      guard case .run(let arguments) = invocation else { throw UsageError("no command to run") }
      return arguments
    }
    #expect(throws: UsageError.self) { try OperationFilter(try arguments("remove --all --label a=1 --label a=2")) }
    #expect(try OperationFilter(try arguments("remove --all --label a=1 --label a")).labels == ["a=1", "a"])
    #expect(throws: UsageError.self) { try TaskFilter(try arguments("list --label a=1 --label a=2")) }
    #expect(throws: UsageError.self) { try TaskFilter(try arguments("list --label =2")) }
    let labels = try TaskFilter(try arguments("list --label a=1 --label a --label b --label c=")).labels
    #expect(labels == ["a": "1", "b": nil, "c": ""])
  }

  @Test("bulk commands select by age as lists do, and only with --all") func ages() async throws {
    func arguments(_ words: [String]) throws -> Arguments {
      let invocation = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
      guard case .run(let arguments) = invocation else { throw UsageError("no command to run") }
      return arguments
    }
    let since = try Timestamp(rfc3339: "2026-01-31T20:00:00Z")
    for name in ["pause", "resume", "cancel", "retry", "remove", "prioritize"] {
      let options = ["--since", "2026-01-31T20:00:00Z", "--before", "2h"]
      let filter = try OperationFilter(try arguments([name, "--all"] + options))
      let listed = try TaskFilter(try arguments(["list"] + options))
      let (before, ofList) = try (#require(filter.before), #require(listed.createdBefore))
      #expect(filter.after == since && listed.createdAfter == since)
      #expect(abs(before.microseconds - ofList.microseconds) < 60_000_000)
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
      let words = "remove --all --files \(options)".split(separator: " ").map(String.init) + [text]
      let invocation = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
      guard case .run(let arguments) = invocation else { throw UsageError("no command to run") }
      return try OperationFilter(arguments)
    }
    #expect(throws: UsageError.self) { try filter("") }
    #expect(try filter("show").text == "show")
  }
}
