import CommandLineKit
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let workers = Subcommand(
    CommandSpec(
      name: "workers", summary: "List the workers and their leases", options: [.json] + OptionSpec.reading,
      examples: [Example("reelhaul workers", "Show which workers run, and how busy they are")],
      exits: ExitCode.meanings(.done, .usage, .unreachable))
  ) { context in
    let (workers, backlog) = try await Fleet.withStore(context) { store in
      (try await store.workers(), try await store.backlog())
    }
    if context.wantsJSON {
      context.output.json(workers)
    } else if workers.isEmpty {
      context.note("There are no workers. Start one with 'reelhaul worker', or a whole fleet with 'reelhaul up'.")
    } else {
      context.print(.workers(workers))
      let handled = workers.filter(\.isLive).reduce(into: Set<TaskKind>()) { $0.formUnion($1.kinds) }
      let unhandled = backlog.kinds.subtracting(handled).map(\.rawValue).sorted()
      if !unhandled.isEmpty {
        context.note("Tasks wait for a worker with a handler: no live one has \(unhandled.joined(separator: ", ")).")
      }
    }
    return .done
  }
}

extension Table {
  fileprivate static func workers(_ workers: [WorkerDocument]) -> Table {
    var table = Table([
      .init("WORKER"), .init("STATE"), .init("HOST", leaves: 4), .init("PID", right: true, leaves: 2),
      .init("RUNNING", right: true), .init("RATE", right: true), .init("LEASE", leaves: 3), .init("STARTED", leaves: 1),
      .init("KINDS", shrinks: true, leaves: 5), .init("VOLUMES", shrinks: true, leaves: 6),
    ])
    for worker in workers {
      table.add([
        "\(worker.id)", worker.isLive ? "live" : "expired", worker.host, "\(worker.pid)", "\(worker.running)",
        ByteCount(worker.bytesPerSecond).rate, worker.leaseUntil.relative, worker.startedAt.relative,
        worker.kinds.map(\.rawValue).sorted().joined(separator: " "),
        worker.volumes.keys.sorted().joined(separator: " "),
      ])
    }
    return table
  }
}
