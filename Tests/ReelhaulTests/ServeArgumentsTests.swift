import CommandLineKit
import ControlAPI
import Testing

@testable import reelhaul

@Suite struct ServeArgumentsTests {
  private func address(_ words: [String]) throws -> ServeAddress {
    let parser = CommandParser(Program.spec, settings: Settings(environment: [:]))
    guard case .run(let arguments) = try parser.parse(["serve"] + words) else { throw UsageError("nothing to run") }
    return try ServeAddress(arguments)
  }

  @Test(
    "who can be reached by others needs tokens, and loopback only if it is asked for",
    arguments: [
      ([], false), (["--address", "127.0.0.2"], false), (["--address", "::1"], false),
      (["--tokens", "required"], true),
      (["--address", "0.0.0.0"], true), (["--address", "::"], true), (["--address", "10.0.0.1"], true),
      (["--address", "0.0.0.0", "--tokens", "required"], true), (["--tokens", "off"], false),
    ])
  func tokens(_ words: [String], _ isNeeded: Bool) throws {
    #expect(try address(words).settings.requiresTokens == isNeeded)
  }

  @Test(
    "nobody can do without tokens what others can reach",
    arguments: ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "169.254.0.1"])
  func open(_ host: String) {
    let error = #expect(throws: UsageError.self) { try address(["--address", host, "--tokens", "off"]) }
    #expect(error?.message.contains("--tokens off is for loopback") == true)
  }
}
