import CommandLineKit
import TaskStore
import Testing

@testable import reelhaul

@Suite struct TokenArgumentsTests {
  private func name(_ name: String) throws -> String {
    let parser = CommandParser(Program.spec, settings: Settings(environment: [:]))
    guard case .run(let arguments) = try parser.parse(["token", "create", "--scope", "read", "--name", name]) else {
      throw UsageError("nothing to run")
    }
    return try NewToken(arguments, hash: []).name
  }

  @Test(
    "a token has a name that workers take as an actor and the table can hold",
    arguments: ["ci", "ann 🎬", String(repeating: "é", count: 100)])
  func names(_ text: String) throws {
    #expect(try name(text) == text)
  }

  @Test(
    "other names are refused",
    arguments: [
      "", "a\nb", "a\u{7f}", "a\u{85}b", String(repeating: "a", count: 101), String(repeating: "e\u{301}", count: 51),
    ])
  func otherNamesAreRefused(_ text: String) {
    #expect(throws: UsageError.self) { try name(text) }
  }
}
