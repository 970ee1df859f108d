import CommandLineKit
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let limits = Subcommand(
    CommandSpec(
      name: "limits", summary: "List limits, how many more tasks may run, and weights of queues",
      discussion: """
        The total, and every kind, queue, host and storage that has a limit, a weight or a running task. LIMIT is how \
        many tasks may run at once: '(declared)' if the kind's handler sets it, '(learned)' if more tasks of the host \
        would stand in line, and nobody set another; '(out)' if the host has stopped serving: only one task at a time \
        asks whether it serves again. ROOM how many more; WEIGHT a queue's share among queues with \
        tasks of equal priority.
        """,
      options: [.json] + OptionSpec.reading,
      examples: [Example("reelhaul limits", "Show which limits are used up")],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let limits = try await Fleet.withStore(context) { try await $0.limits() }
    if context.wantsJSON {
      context.output.documents(limits) { $0.write(to: &$1) }
    } else {
      context.print(.limits(limits))
    }
    return .done
  }

  static let limit = Subcommand(
    CommandSpec(
      name: "limit", summary: "Set how many tasks may run at once",
      discussion: """
        In the whole fleet (total), or of one kind, queue, host or storage. It applies from the next claim on; running \
        tasks are not stopped. With 0 no further task starts; 'none' removes the limit, and the one that a kind's \
        handler declares, or that the workers learned of a host, applies again.
        """,
      options: [.json] + OptionSpec.reading,
      positionals: [
        PositionalSpec(
          "SCOPE", kind: .choice(LimitScope.allCases.map(\.rawValue)), help: "total, kind, queue, host or storage"),
        PositionalSpec("NAME", .optional, help: "the kind, queue, host or storage; total has no name"),
        PositionalSpec("LIMIT", help: "how many tasks, or none"),
      ],
      examples: [
        Example("reelhaul limit host example.org 4", "At most four transfers from that host, fleet-wide"),
        Example("reelhaul limit queue archive 0", "Hold a queue; 'none' releases it"),
        Example("reelhaul limit total none", "Only the workers' own limits apply"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let words = context.arguments.positionals
    let (scope, name) = try LimitArguments.bucket(words[0], words.count == 3 ? words[1] : nil)
    let limit = try LimitArguments.limit(words[words.count - 1])
    return try await show(LimitUse(scope: scope, name: name), context) { store in
      try await store.setLimit(scope, name: name, to: limit)
      let doubt = LimitArguments.doubt(
        scope, name, live: try await store.workers().filter(\.isLive), try await store.backlog())
      if let doubt { context.note(doubt) }
    }
  }

  static let weight = Subcommand(
    CommandSpec(
      name: "weight", summary: "Set a queue's share of the workers",
      discussion: """
        Among queues that have tasks of equal priority, a queue of weight 3 starts three tasks for each one of a queue of \
        weight 1. The default weight is 1.
        """,
      options: [.json] + OptionSpec.reading,
      positionals: [
        PositionalSpec("QUEUE", help: "the queue's name"),
        PositionalSpec("WEIGHT", help: "from 0.001 to 1000"),
      ],
      examples: [Example("reelhaul weight archive 0.5", "Half of a normal queue's share")],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable))
  ) { context in
    let (scope, name) = try LimitArguments.bucket(LimitScope.queue.rawValue, context.arguments.positionals[0])
    let weight = try LimitArguments.weight(context.arguments.positionals[1])
    return try await show(LimitUse(scope: scope, name: name, weight: 1), context) { store in
      try await store.setWeight(queue: name, to: weight)
    }
  }

  /// Makes a change and prints the result; `plain` if the bucket no longer has a limit, a weight or a running task.
  private static func show(
    _ plain: LimitUse, _ context: Context, after change: @Sendable (any LimitStore & FleetReader) async throws -> Void
  ) async throws -> ExitCode {
    let use = try await Fleet.withStoreToChange(context) { store in
      try await change(store)
      return try await store.limits().first { $0.isOf(plain.scope, plain.name) } ?? plain
    }
    if context.wantsJSON {
      context.output.document { use.write(to: &$0) }
    } else {
      context.print(.limits([use]))
    }
    return .done
  }
}

extension Table {
  fileprivate static func limits(_ limits: [LimitUse]) -> Table {
    var table = Table([
      .init("SCOPE"), .init("NAME", shrinks: true), .init("RUNNING", right: true), .init("LIMIT", right: true),
      .init("ROOM", right: true), .init("WEIGHT", right: true),
    ])
    for use in limits {
      table.add([
        use.scope.rawValue, use.name, "\(use.running)", limit(use),
        use.room.map { "\($0)" } ?? "",
        use.weight.map { $0 == $0.rounded() ? "\(Int($0))" : "\($0)" } ?? "",
      ])
    }
    return table
  }

  private static func limit(_ use: LimitUse) -> String {
    guard let limit = use.limit else { return "none" }
    if use.isOut { return "\(limit) (out)" }
    let origin = limit == use.declared ? " (declared)" : limit == use.learned ? " (learned)" : ""
    return "\(limit)\(origin)"
  }
}
