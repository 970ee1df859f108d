import CommandLineKit
import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let workers = Subcommand(
    CommandSpec(
      name: "workers", summary: "List the workers and their leases, or end one",
      discussion: """
        LEASE is how long ago a worker renewed its lease; it does so twice a second. 'reelhaul workers drain WORKER' \
        ends a worker as SIGTERM does: it takes no new tasks, records its progress, hands its tasks back and ends with 0. \
        Whoever started it may start a new one, as 'reelhaul up' does. WORKER is its id, or the end of it.
        """,
      options: [.json] + OptionSpec.reading,
      positionals: [
        PositionalSpec("ACTION", .optional, kind: .choice(["drain"]), help: "drain: end a worker in order"),
        PositionalSpec("WORKER", .optional, help: "the worker's id, or the end of it"),
      ],
      examples: [
        Example("reelhaul workers", "Show which workers run, and how busy they are"),
        Example("reelhaul workers drain 6d2f0a7e4b11", "End one worker; others continue its tasks"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound))
  ) { context in
    let words = context.arguments.positionals
    guard words.isEmpty else {
      guard words.count == 2 else { throw UsageError("which worker? Write it as 'reelhaul workers drain WORKER'") }
      return try await drain(words[1], context)
    }
    let (workers, backlog) = try await Fleet.withStore(context) { store in
      (try await store.workers(), try await store.backlog())
    }
    if context.wantsJSON {
      context.output.documents(workers, WorkerDocumentJSON.write)
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

  private static func drain(_ word: String, _ context: Context) async throws -> ExitCode {
    let worker = try await Fleet.withStoreToChange(context) { store in
      let live = try await store.workers().filter(\.isLive)
      let named = IDEnding(word).map { ending in live.filter { ending.matches($0.id) } } ?? []
      guard let worker = named.first else {
        throw CommandFailure(.notFound, "there is no live worker \(word)", hint: "'reelhaul workers' shows them.")
      }
      guard named.count == 1 else {
        throw CommandFailure(.usage, "the ids of several workers end in \(word)", hint: "Give more of its digits.")
      }
      guard try await store.drain(worker.id) else {
        throw CommandFailure(.notFound, "worker \(worker.id) has ended")
      }
      return worker
    }
    if context.wantsJSON {
      context.output.document { json in
        json.object { json in
          json.member("worker", "\(worker.id)")
          json.member("state", "draining")
        }
      }
    }
    if worker.mayNotDrain {
      context.note(
        """
        Worker \(worker.id) was asked to drain, but is of an earlier version and may not know the request. If it starts \
        further tasks, send SIGTERM to its process \(worker.pid) on \(worker.host).
        """)
    } else if !context.wantsJSON {
      context.note("Worker \(worker.id) on \(worker.host) drains: it hands back its tasks and ends.")
    }
    return .done
  }
}

extension Table {
  fileprivate static func workers(_ workers: [WorkerDocument]) -> Table {
    var table = Table([
      .init("WORKER"), .init("STATE"), .init("HOST", leaves: 4), .init("PID", right: true, leaves: 2),
      .init("RUNNING", right: true), .init("RATE", right: true), .init("LEASE", leaves: 3), .init("STARTED", leaves: 1),
      .init("VERSION", leaves: 5), .init("KINDS", shrinks: true, leaves: 6),
      .init("VOLUMES", shrinks: true, leaves: 7),
    ])
    for worker in workers {
      table.add([
        "\(worker.id)", worker.state, worker.host, "\(worker.pid)", "\(worker.running)",
        ByteCount(worker.bytesPerSecond).rate,
        DurationText.brief(worker.leaseAge), worker.startedAt.relative,
        worker.version ?? "", worker.kinds.map(\.rawValue).sorted().joined(separator: " "),
        worker.volumes.keys.sorted().joined(separator: " "),
      ])
    }
    return table
  }
}
