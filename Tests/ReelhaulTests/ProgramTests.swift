import CommandLineKit
import Testing

@testable import reelhaul

@Suite struct ProgramTests {
  @Test(arguments: Program.commands.map(\.spec))
  func namesEachOptionOnce(_ command: CommandSpec) {
    let options = command.options + Program.spec.options + [.help]
    #expect(Set(options.map(\.name)).count == options.count)
    let shorts = options.compactMap(\.short)
    #expect(Set(shorts).count == shorts.count)
  }

  @Test(arguments: Program.commands.map(\.spec))
  func defaultsAreValuesTheOptionTakes(_ command: CommandSpec) throws {
    for option in command.options {
      guard let value = option.defaultValue else { continue }
      let words = [command.name, "--\(option.name)=\(value)", "--help"]
      _ = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
    }
  }

  @Test(arguments: (Program.commands.map(\.spec) + [Program.spec]).flatMap(\.examples))
  func examplesCanBeTyped(_ example: Example) throws {
    guard example.line.hasPrefix("reelhaul "), !example.line.contains("$(") else { return }
    let command = example.line.prefix { $0 != "|" }
    let words = command.replacing("'A film'", with: "film").split(separator: " ").dropFirst().map(String.init)
    _ = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
  }

  @Test(arguments: Program.commands.map(\.spec))
  func helpSaysWhatACommandIsFor(_ command: CommandSpec) {
    #expect(!command.summary.isEmpty && !command.summary.hasSuffix("."))
    #expect(HelpText(command, path: ["reelhaul", command.name]).render().contains(command.summary))
  }
}
