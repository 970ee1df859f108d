import CommandLineKit
import WorkerOptions

/// The arguments of a command, and its outputs.
struct Context: Sendable {
  let arguments: Arguments
  let environment: [String: String]
  let console: Console

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

  /// Tells a person something beside the result, on standard error.
  func note(_ text: String) { console.note(text) }

  func print(_ table: Table) { console.print(table) }
}
