import Bench
import CommandLineKit
import LocalFleet
import WorkerOptions

extension Subcommand {
  static let bench = Subcommand(
    CommandSpec(
      name: "bench", summary: "Measure parts of the fleet on this machine",
      discussion: Benchmark.all.map { "\($0.name): \($0.summary)." }.joined(separator: "\n")
        + "\n\nEach starts its own fleet and the programs to compare with: nginx, curl and aria2c must be installed.",
      options: [.json],
      positionals: [
        PositionalSpec(
          "NAME", .many, kind: .choice(Benchmark.all.map(\.name)),
          help: "the benchmarks to run; all by default")
      ],
      examples: [Example("reelhaul bench small-files --json", "One benchmark, as JSON")],
      exits: ExitCode.meanings(.done, .failed, .usage))
  ) { context in
    let names = context.arguments.positionals
    let bench = BenchContext(
      console: context.console, environment: context.environment, executable: try FleetOptions.ownExecutable(),
      wantsJSON: context.wantsJSON)
    for benchmark in Benchmark.all where names.isEmpty || names.contains(benchmark.name) {
      try await benchmark.run(bench)
    }
    return .done
  }
}
