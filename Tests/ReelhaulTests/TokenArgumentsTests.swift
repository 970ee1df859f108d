import CommandLineKit
import TaskStore
import Testing

@testable import reelhaul

@Suite struct TokenArgumentsTests {
  private func token(_ words: String...) throws -> NewToken {
    let parser = CommandParser(Program.spec, settings: Settings(environment: [:]))
    guard case .run(let arguments) = try parser.parse(["token", "create"] + words) else {
      throw UsageError("nothing to run")
    }
    return try NewToken(arguments, hash: [1, 2, 3, 4])
  }

  private func name(_ name: String) throws -> String { try token("--scope", "read", "--name", name).name }

  @Test("a token has the scope, the queues and the time that it is given") func limits() throws {
    let limited = try token("--scope", "write", "--queue", "a", "--queue", "b", "--expires", "30d")
    #expect(limited.scope == .write)
    #expect(limited.queues == ["a", "b"])
    #expect(limited.lifetime == .seconds(30 * 86_400))
    let plain = try token("--scope", "read")
    #expect(plain.scope == .read && plain.name == "read-010203")
    #expect(plain.queues == nil && plain.lifetime == nil)
    for wrong in ["0s", "3651d", "soon"] {
      #expect(throws: UsageError.self, "\(wrong)") { try token("--scope", "read", "--expires", wrong) }
    }
    #expect(throws: UsageError.self) { try token("--name", "ci") }
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
