import CommandLineKit
import Glibc
import System
import TaskCore
import TaskStore

/// Follows tasks by reading the store a few times a second, and shows what changes.
struct TaskWatch {
  private static let interval: Duration = .milliseconds(250)
  /// After which a task that has not begun is worth a word.
  private static let patience: Duration = .seconds(10)

  /// Tasks of each state that a watch without names follows.
  private static let most = 100

  private let store: any TaskStore
  private let context: Context
  private let isQuiet: Bool

  init(_ store: any TaskStore, _ context: Context, isQuiet: Bool = false) {
    self.store = store
    self.context = context
    self.isQuiet = isQuiet
  }

  /// Follows `ids` until all are as wanted or removed. Returns their last documents, in order; `known` are those of them
  /// that were seen before.
  func run(
    _ ids: [UUID], known: [TaskDocument] = [], until isEnough: @Sendable (TaskDocument) -> Bool
  ) async throws -> [TaskDocument] {
    await tellOfInterrupt(ids)
    var display = makeDisplay()
    var tasks = NamedTasks(ids, known: known)
    var told: Set<String> = []
    let start = ContinuousClock.now
    while true {
      let removed = tasks.update(try await store.tasks(ids))
      display.show(tasks.documents)
      if !isQuiet { for task in removed { display.say("\(task.title) was removed.") } }
      if tasks.areAll(isEnough) { return tasks.documents }
      var obstacles = try await dependencies(tasks.existing)
      if ContinuousClock.now - start > Self.patience { obstacles += try await obstacle(tasks).map { [$0] } ?? [] }
      for obstacle in obstacles where told.insert(obstacle).inserted { display.say(obstacle) }
      try await Task.sleep(for: Self.interval)
    }
  }

  /// Which of what is followed can only go on once somebody does something about what it comes after.
  private func dependencies(_ tasks: [TaskDocument]) async throws -> [String] {
    let blocked = tasks.filter { $0.state == .blocked }
    guard !blocked.isEmpty else { return [] }
    let states = try await store.states(of: blocked.flatMap(\.spec.after))
    return blocked.compactMap { task in
      guard task.spec.after.contains(where: { [.failed, .canceled].contains(states[$0]) }) else { return nil }
      return WaitReason.predecessors(of: task, states: states).map { Self.sentence(task, $0) }
    }
  }

  private static func sentence(_ task: TaskDocument, _ reason: String) -> String { "\(task.title) waits \(reason)." }

  /// Why nothing of what is followed moves; nil where something does.
  private func obstacle(_ tasks: NamedTasks) async throws -> String? {
    if tasks.unseen > 0 { return "Kafka has the command, but no worker has taken it yet: see 'reelhaul workers'." }
    let waiting = [TaskState.queued, .blocked]
    guard tasks.existing.allSatisfy({ waiting.contains($0.state) }), let first = tasks.existing.first
    else { return nil }
    return try await WaitReason.of([first], in: store)[first.spec.id].map { Self.sentence(first, $0) }
  }

  /// An interrupt ends this process, and not the tasks.
  private func tellOfInterrupt(_ ids: [UUID]) async {
    let stop = StopSignal()
    let (verb, names) = (ids.count == 1 ? "The task goes" : "The tasks go", ids.prefix(3).map { "\($0)" })
    let list = names.joined(separator: " ") + (ids.count > 3 ? " …" : "")
    stop.onStop { [context] in
      if context.terminal.isInteractive { context.error.line() }
      context.note("\(verb) on: 'reelhaul watch \(list)' follows, 'reelhaul cancel \(list)' stops.")
      stop.end()
    }
    await stop.isListening()
  }

  /// Follows all unfinished tasks, and those that end meanwhile, until the process is interrupted.
  func runForever() async throws -> ExitCode {
    var display = makeDisplay()
    let states: [TaskState] = [.running, .publishing, .queued, .paused, .blocked]
    var tasks = FollowedTasks(limit: states.count * Self.most)
    while true {
      var listed: [TaskDocument] = []
      var more: Set<TaskState> = []
      for state in states {
        let filter = TaskFilter(state: TaskStatus(rawValue: state.rawValue), limit: Self.most + 1)
        let found = try await store.tasks(filter)
        if found.count > Self.most { more.insert(state) }
        listed += found.prefix(Self.most).reversed()
      }
      try await tasks.update(listed: listed) { try await store.tasks($0) }
      display.show(tasks.documents, more: more)
      // What has ended stays on a terminal; elsewhere it was shown once.
      if !context.terminal.isInteractive { tasks.dropEnded() }
      try await Task.sleep(for: Self.interval)
    }
  }

  private func makeDisplay() -> any TaskDisplay {
    if isQuiet { return NoDisplay() }
    if context.wantsJSON { return JSONLinesDisplay(context.output) }
    return context.terminal.isInteractive
      ? BoardDisplay(context.output, context.terminal) : LinesDisplay(context.output)
  }
}
