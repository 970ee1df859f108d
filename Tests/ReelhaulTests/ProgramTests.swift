import CommandLineKit
import TaskCore
import TestKit
import Testing
import WorkerOptions

@testable import reelhaul

@Suite struct ProgramTests {
  /// The commands by name, because a failing test needs to show only the name.
  private static let commands = Dictionary(uniqueKeysWithValues: Program.commands.map { ($0.spec.name, $0.spec) })

  @Test("every option of a command has a unique name and letter", arguments: commands.keys.sorted())
  func namesEachOptionOnce(_ name: String) throws {
    let command = try #require(Self.commands[name])
    let options = command.options + Program.spec.options + [.help]
    #expect(Set(options.map(\.name)).count == options.count)
    let shorts = options.compactMap(\.short)
    #expect(Set(shorts).count == shorts.count)
  }

  /// A worker waits for them instead.
  @Test(
    "the help of every command that needs Kafka or PostgreSQL tells what it ends with if they cannot be reached",
    arguments: commands.keys.filter { $0 != "worker" }.sorted())
  func tellsOfServicesThatCannotBeReached(_ name: String) throws {
    let command = try #require(Self.commands[name])
    guard command.options.contains(where: { [OptionSpec.kafka.name, OptionSpec.postgres.name].contains($0.name) })
    else { return }
    #expect(command.exits.contains { $0.code == ExitCode.unreachable.rawValue })
  }

  @Test("every default is a valid value of its option", arguments: commands.keys.sorted())
  func defaultsAreValuesTheOptionTakes(_ name: String) throws {
    let command = try #require(Self.commands[name])
    for option in command.options {
      guard let value = option.defaultValue else { continue }
      let words = [command.name, "--\(option.name)=\(value)", "--help"]
      _ = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
    }
  }

  @Test(
    "every example in help can be parsed",
    arguments: (Program.commands.map(\.spec) + [Program.spec]).flatMap(\.examples))
  func examplesCanBeTyped(_ example: Example) throws {
    guard example.line.hasPrefix("reelhaul "), !example.line.contains("$(") else { return }
    let command = example.line.prefix { $0 != "|" }
    let words = command.replacing("'A film'", with: "film").split(separator: " ").dropFirst().map(String.init)
    guard case .run(let arguments) = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
    else { return }
    let spec = try #require(Self.commands[arguments.path[0]])
    if spec.positionals.contains(where: { $0.name == "TASK" }) { _ = try TaskID.parse(arguments.positionals) }
  }

  /// An example can be pasted into a shell and does what its text says.
  @Test("every example of a download is a valid task", arguments: Subcommand.download.spec.examples)
  func examplesOfDownloadsAreTasks(_ example: Example) throws {
    let words = example.line.replacing("'A film'", with: "film").split(separator: " ").dropFirst().map(String.init)
    guard case .run(let arguments) = try CommandParser(Program.spec, settings: Settings(environment: [:])).parse(words)
    else { return }
    #expect(throws: Never.self) { try TaskSpec(kind: .download, source: arguments.positionals[0], arguments).checked() }
  }

  @Test("an action that a command does not have is told by what it has")
  func unknownActionsAreTold() throws {
    for (command, action) in [
      ("workers", "drain"), ("operations", "list or cancel"), ("dead-letters", "list, replay or drop"),
    ] {
      let error = #expect(throws: UsageError.self) {
        try CommandParser(Program.spec, settings: Settings(environment: [:])).parse([command, "foo"])
      }
      #expect(error?.message == "ACTION must be \(action), not \"foo\"")
    }
  }

  @Test("the README lists the exit codes as the help does", arguments: ExitCode.allCases)
  func readmeListsExitCodes(_ code: ExitCode) throws {
    let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
    let file = String(decoding: try TestFleet.contents("\(root)/README.md"), as: UTF8.self)
    #expect(file.contains("\n| \(code.rawValue) | \(code.meaning)"))
  }

  @Test("completions offer the names of brokers", arguments: CompletionScript.Shell.allCases)
  func brokersAreOffered(_ shell: CompletionScript.Shell) {
    let brokers = shell == .fish ? #"embedded\t apache-kafka\t"# : "embedded apache-kafka"
    #expect(CompletionScript.make(for: shell, Program.spec).contains(brokers))
  }

  @Test("the help of control commands says of every flag whether it needs --all", arguments: ControlAction.names)
  func helpSaysWhatNeedsAll(_ name: String) async throws {
    let command = try #require(Self.commands[name])
    let parser = CommandParser(Program.spec, settings: Settings(environment: [:]))
    for option in command.options where option.kind == .flag && option.name != OptionSpec.everything.name {
      guard case .run(let arguments) = try parser.parse([name, option.spelling, "\(UniqueID(high: 1, low: 2))"]) else {
        throw UsageError("nothing to run")
      }
      let error = await #expect(throws: UsageError.self) {
        try await ControlCommand(.cancel, Context(arguments, environment: [:])).run()
      }
      #expect(option.help.hasPrefix("With --all") == error?.message.hasSuffix("needs --all"), "\(option.name)")
    }
  }

  @Test("the help of every command has its summary", arguments: commands.keys.sorted())
  func helpSaysWhatACommandIsFor(_ name: String) throws {
    let command = try #require(Self.commands[name])
    #expect(!command.summary.isEmpty && !command.summary.hasSuffix("."))
    #expect(HelpText(command, path: ["reelhaul", command.name]).render().contains(command.summary))
  }
}
