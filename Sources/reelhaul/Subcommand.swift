import CommandLineKit
import WorkerOptions

/// A command: its command line, and its code.
struct Subcommand: Sendable {
  let spec: CommandSpec
  let run: @Sendable (Context) async throws -> ExitCode

  init(_ spec: CommandSpec, run: @escaping @Sendable (Context) async throws -> ExitCode) {
    self.spec = spec
    self.run = run
  }
}
