/// What a command line asks for.
package enum Invocation: Sendable {
  case run(Arguments)
  /// The help of the command at `path`, the program's name first.
  case help(CommandSpec, path: [String])
  case version
}
