/// The request of a command line.
package enum Invocation: Sendable {
  case run(Arguments)
  /// The help of the command at `path`, which begins with the program's name.
  case help(CommandSpec, path: [String])
  case version
}
