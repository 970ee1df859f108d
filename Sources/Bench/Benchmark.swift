import CommandLineKit

/// One measurement of the fleet or of a part of it, compared with a target.
package struct Benchmark: Sendable {
  package var name: String
  /// One line, without a full stop.
  package var summary: String
  /// Measures and prints the figures.
  package var run: @Sendable (BenchContext) async throws -> Void

  package static let all: [Benchmark] = [
    .engine, .largeFile, .tls, .far, .hosts, .smallFiles, .batch, .noop, .claims, .backlog, .memory, .limited,
  ]
}

/// The inputs of a benchmark.
package struct BenchContext: Sendable {
  let console: Console
  let environment: [String: String]
  /// The path of the program whose commands are measured.
  let executable: String
  let wantsJSON: Bool

  package init(console: Console, environment: [String: String], executable: String, wantsJSON: Bool) {
    self.console = console
    self.environment = environment
    self.executable = executable
    self.wantsJSON = wantsJSON
  }
}
