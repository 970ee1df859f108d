import CommandLineKit

/// A small program for the tests.
enum Sample {
  static let verbose = OptionSpec("verbose", short: "v", .flag, environment: "APP_VERBOSE", help: "Say more")
  static let force = OptionSpec("force", short: "f", .flag, help: "Do not ask")
  static let count = OptionSpec("count", short: "n", .integer(-10...10), default: "1", help: "How many")
  static let size = OptionSpec("size", .bytes, environment: "APP_SIZE", help: "How large")
  static let mode = OptionSpec("mode", .choice(["fast", "safe"]), group: "Behaviour", help: "How")
  static let place = OptionSpec("place", .words(["here", "there"]), valueName: "here|there|NAME", help: "Where")
  static let header = OptionSpec("header", .text, valueName: "'K: V'", repeatable: true, help: "A header")

  static let get = CommandSpec(
    name: "get", summary: "Get it", discussion: "First paragraph.\n\nSecond one.",
    options: [force, count, size, mode, header],
    positionals: [
      PositionalSpec("URL", help: "what to get"), PositionalSpec("FILE", .optional, kind: .file, help: "where to"),
    ],
    examples: [Example("app get https://a.example/x", "Get x")], exits: [ExitMeaning(0, "done")])
  static let stop = CommandSpec(
    name: "stop", synonyms: ["kill"], summary: "Stop it", options: [place],
    positionals: [PositionalSpec("TASK", .many, help: "the tasks")])
  static let shell = CommandSpec(
    name: "shell", summary: "A shell's script",
    positionals: [PositionalSpec("SHELL", kind: .choice(["bash", "zsh"]), help: "which")])
  static let copy = CommandSpec(
    name: "copy", summary: "Copy it",
    positionals: [
      PositionalSpec("SOURCE", help: "where from"),
      PositionalSpec("N", .optional, kind: .integer(1...9), help: "how often"),
      PositionalSpec("TARGET", help: "where to"),
    ])
  static let program = CommandSpec(
    name: "app", summary: "An application", options: [verbose], subcommands: [get, stop, shell, copy])

  static func parse(
    _ line: String, environment: [String: String] = [:], file: [String: String] = [:]
  ) throws(UsageError) -> Invocation {
    try CommandParser(program, settings: Settings(environment: environment, file: file))
      .parse(line.split(separator: " ").map(String.init))
  }

  static func arguments(
    _ line: String, environment: [String: String] = [:], file: [String: String] = [:]
  ) throws -> Arguments {
    guard case .run(let arguments) = try parse(line, environment: environment, file: file) else {
      throw UsageError("no command to run")
    }
    return arguments
  }
}
