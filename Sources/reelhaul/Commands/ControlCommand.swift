import CommandLineKit
import ReelhaulClient
import ReelhaulKafka
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

/// The commands that change existing tasks. All tasks' states are checked before any command is sent.
extension Subcommand {
  static let pause = control(
    .pause, "pause", "Stop tasks and keep their bytes",
    "Running tasks stop within a moment. Their bytes stay on disk, and 'reelhaul resume' continues from there.")
  static let resume = control(.resume, "resume", "Continue paused tasks", "They run again, on any worker.")
  static let cancel = control(
    .cancel, "cancel", "Stop tasks for good",
    "Their bytes on disk are removed soon. 'reelhaul retry' starts them again.")
  static let retry = control(
    .retry, "retry", "Queue failed or canceled tasks again", "Their attempts are counted from zero.")
  static let remove = control(
    "remove", "Delete tasks that no worker runs",
    "The record is deleted, and so are unfinished files. Complete files stay unless --files is given.",
    options: [.alsoFiles], example: "\(Example.task) --files"
  ) { .remove(files: $0[flag: .alsoFiles]) }

  static let prioritize = control(
    "prioritize", "Change the priority of tasks",
    "Higher runs first. A running task continues; the new priority applies if it is queued again.",
    options: [.newPriority], example: "\(Example.task) --priority 100"
  ) { arguments in
    guard let priority = arguments.integer(.newPriority) else {
      throw UsageError("reelhaul prioritize needs --priority N")
    }
    return .prioritize(Int(priority))
  }

  private static func control(
    _ action: ControlAction, _ name: String, _ summary: String, _ discussion: String
  ) -> Subcommand {
    control(name, summary, discussion) { _ in action }
  }

  private static func control(
    _ name: String, _ summary: String, _ discussion: String, options: [OptionSpec] = [], example: String = Example.task,
    _ action: @escaping @Sendable (Arguments) throws -> ControlAction
  ) -> Subcommand {
    let extra = options.contains(.newPriority) ? " --priority 100" : ""
    return Subcommand(
      CommandSpec(
        name: name, summary: summary,
        discussion: discussion + """
          \n\nReturns once Kafka has the command. If PostgreSQL is configured, tasks that do not exist or whose state \
          does not allow it are refused first, and then nothing is sent, unless workers have not applied for some \
          seconds what was sent before. With --all it goes to every task that matches and whose state allows it, and \
          returns once it was applied to them: 'reelhaul operations' lists these.
          """,
        options: options + [.waitForEffect, .jsonOfAll] + OptionSpec.operation + OptionSpec.producing,
        positionals: [.anyTasks],
        examples: [
          Example("reelhaul \(name) \(example)", summary),
          Example("reelhaul \(name) --all --queue archive\(extra) --dry-run", "Which tasks it would go to"),
        ], exits: ControlCommand.exits)
    ) { context in
      let action = try action(context.arguments)
      if context.arguments[flag: .everything] {
        try context.arguments.refuse([.waitForEffect], "is for tasks that are named")
        return try await OperationCommand(action, context).run()
      }
      return try await ControlCommand(action, context).run()
    }
  }
}

extension OptionSpec {
  fileprivate static let newPriority = OptionSpec(
    "priority", short: "p", .priority, help: "The new priority; higher runs first")
  fileprivate static let alsoFiles = OptionSpec(
    "files", .flag, help: "Also delete the files that the tasks have made in storages; what is at servers stays")
  fileprivate static let jsonOfAll = OptionSpec(
    "json", .flag, group: "Output", help: "With --all: print one JSON document")
}

struct ControlCommand {
  static let exits = ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound, .refused)

  private let action: ControlAction
  private let context: Context

  init(_ action: ControlAction, _ context: Context) {
    self.action = action
    self.context = context
  }

  func run() async throws -> ExitCode {
    let names = try TaskID.parse(context.arguments.positionals)
    try context.arguments.refuse(OptionSpec.operation + [.json], "needs --all")
    guard !names.isEmpty else {
      throw UsageError("which tasks? Give their ids, or --all for every task that matches")
    }
    guard context.arguments[.postgres] != nil else {
      let tasks = try names.map { name throws(UsageError) in
        guard case .whole(let id) = name else {
          throw Fleet.unconfigured("naming a task by the end of its id needs PostgreSQL", .postgres, context.arguments)
        }
        return id
      }
      if context.arguments[flag: .waitForEffect] {
        throw Fleet.unconfigured("--wait needs PostgreSQL", .postgres, context.arguments)
      }
      try await Fleet.send(commands(Self.distinct(tasks)), context)
      return .done
    }
    return try await Fleet.withStore(context) { store in
      let tasks = Self.distinct(try await TaskLookup(store).ids(names))
      try await check(tasks, in: store)
      let commands = commands(tasks)
      try await Fleet.send(commands, context)
      if context.arguments[flag: .waitForEffect] { try await CommandWait(store, context).run(commands) }
      return .done
    }
  }

  /// Each task once: a task named twice would refuse the second command.
  static func distinct(_ tasks: [UniqueID]) -> [UniqueID] {
    var seen: Set<UniqueID> = []
    return tasks.filter { seen.insert($0).inserted }
  }

  private func commands(_ tasks: [UniqueID]) -> [Command] {
    tasks.map { .control(.init(id: .make(), taskID: $0, action: action, actor: CommandActor.name)) }
  }

  /// How long a command waits for those before it to be applied.
  private static let patience = Duration.seconds(5)

  /// Refuses what cannot be applied. But tasks and states may be older than what Kafka has: then it waits until the workers
  /// have applied that, and sends what they are late for, because they decide in the order of sending.
  private func check(_ tasks: [UniqueID], in store: any TaskReader & DetailReader) async throws {
    guard try await refusal(of: tasks, in: store, atOnce: true) != nil else { return }
    let sent = await sent()
    var isApplied = sent == nil
    let deadline = BootInstant.now + Self.patience
    while true {
      // Before the look at the tasks.
      if let (commands, ends) = sent { isApplied = (try? await commands.hasRead(before: ends)) ?? isApplied }
      guard let refusal = try await refusal(of: tasks, in: store, atOnce: sent != nil) else { return }
      if isApplied { throw refusal }
      guard !deadline.hasPassed else {
        return context.note(
          "Workers have not applied all commands before this one, so it is sent. As it stands, \(refusal.message).")
      }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  private func refusal(
    of tasks: [UniqueID], in store: any TaskReader & DetailReader, atOnce: Bool
  ) async throws -> CommandFailure? {
    do {
      for task in tasks { try await check(task, in: store, atOnce: atOnce) }
      return nil
    } catch let refusal as CommandFailure where [.notFound, .refused].contains(refusal.code) {
      return refusal
    }
  }

  /// The commands in Kafka, and their ends now; nil if they cannot be looked at.
  private func sent() async -> (GroupObserver, [TopicPartition: Int64])? {
    guard let kafka = try? Fleet.kafka(context.arguments), let topics = try? FleetSettings.topics(context.arguments),
      let commands = try? GroupObserver(kafka, group: topics.group, topic: topics.commands, timeout: .seconds(2)),
      let ends = try? await commands.ends()
    else { return nil }
    return (commands, ends)
  }

  private func check(_ id: UniqueID, in store: any TaskReader & DetailReader, atOnce: Bool) async throws {
    let document = try await TaskLookup(store).get(id, atOnce: atOnce)
    var machine = TaskMachine(state: document.state)
    do {
      _ = try machine.handle(.control(action))
    } catch {
      // A pause that its run still follows is withdrawn.
      if action == .resume, try await store.stopping([id])[id] == .pause { return }
      throw CommandFailure(
        .refused, "\(action.name) is not possible: task \(id) is \(document.status)",
        hint: RefusalAdvice.of(action, id, in: document.state))
    }
  }
}
