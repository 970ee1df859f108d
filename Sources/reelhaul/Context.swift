import CommandLineKit
import WorkerOptions

/// The arguments of a command, and its outputs.
struct Context: Sendable {
  let arguments: Arguments
  let environment: [String: String]
  var console: Console

  init(_ arguments: Arguments, environment: [String: String]) {
    self.arguments = arguments
    self.environment = environment
    console = Console(environment: environment)
  }

  var wantsJSON: Bool { arguments[flag: .json] }

  var output: Output { console.output }
  var error: Output { console.error }
  /// The terminal of standard output.
  var terminal: Terminal { console.terminal }

  /// Prints a note for people on standard error, separate from the result.
  func note(_ text: String) { console.note(text) }

  func print(_ table: Table) { console.print(table) }
}
