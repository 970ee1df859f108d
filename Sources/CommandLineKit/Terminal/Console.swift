import Glibc

/// A program's standard output and standard error, with the terminals behind them.
package struct Console: Sendable {
  package var output = Output.standard
  package let error = Output.error
  /// The terminal of standard output.
  package let terminal: Terminal
  private let errorTerminal: Terminal

  package init(environment: [String: String]) {
    terminal = Terminal(descriptor: STDOUT_FILENO, environment: environment)
    errorTerminal = Terminal(descriptor: STDERR_FILENO, environment: environment)
  }

  /// Prints a remark for people, which is not part of the result, on standard error.
  package func note(_ text: String) {
    for line in errorTerminal.wrap(DisplayWidth.printable(text)) { error.line(line) }
  }

  /// Prints a table on standard output.
  package func print(_ table: Table) {
    output.write(table.lines(on: terminal).map { $0 + "\n" }.joined())
  }
}
