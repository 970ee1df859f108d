import CommandLineKit
import WorkerOptions

/// A command: how it is written, and what it does.
struct Subcommand: Sendable {
  let spec: CommandSpec
  let run: @Sendable (Context) async throws -> ExitCode

  init(_ spec: CommandSpec, run: @escaping @Sendable (Context) async throws -> ExitCode) {
    self.spec = spec
    self.run = run
  }
}
