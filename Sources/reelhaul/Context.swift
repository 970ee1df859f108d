import CommandLineKit
import Glibc

/// What a command has to work with: its arguments, and where its output goes.
struct Context: Sendable {
  let arguments: Arguments
  let environment: [String: String]
  let output = Output.standard
  let error = Output.error
  /// Standard output's.
  let terminal: Terminal
  /// Standard error's.
  private let errorTerminal: Terminal

  init(_ arguments: Arguments, environment: [String: String]) {
    self.arguments = arguments
    self.environment = environment
    terminal = Terminal(descriptor: STDOUT_FILENO, environment: environment)
    errorTerminal = Terminal(descriptor: STDERR_FILENO, environment: environment)
  }

  var wantsJSON: Bool { arguments[flag: .json] }

  /// Says something besides the result, to a person.
  func note(_ text: String) {
    for line in errorTerminal.wrap(DisplayWidth.printable(text)) { error.line(line) }
  }

  func print(_ table: Table) {
    output.write(table.lines(on: terminal).map { $0 + "\n" }.joined())
  }
}
