import CommandLineKit
import Glibc

/// The arguments of a command, and its outputs.
struct Context: Sendable {
  let arguments: Arguments
  let environment: [String: String]
  let output = Output.standard
  let error = Output.error
  /// The terminal of standard output.
  let terminal: Terminal
  /// The terminal of standard error.
  private let errorTerminal: Terminal

  init(_ arguments: Arguments, environment: [String: String]) {
    self.arguments = arguments
    self.environment = environment
    terminal = Terminal(descriptor: STDOUT_FILENO, environment: environment)
    errorTerminal = Terminal(descriptor: STDERR_FILENO, environment: environment)
  }

  var wantsJSON: Bool { arguments[flag: .json] }

  /// Prints a remark for people, which is not part of the result.
  func note(_ text: String) {
    for line in errorTerminal.wrap(DisplayWidth.printable(text)) { error.line(line) }
  }

  func print(_ table: Table) {
    output.write(table.lines(on: terminal).map { $0 + "\n" }.joined())
  }
}
