import CommandLineKit
import Glibc
import ReelhaulSystem
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
  private let awaited: WatchEnd.Awaited

  init(_ store: any TaskStore, _ context: Context, isQuiet: Bool = false, awaiting awaited: WatchEnd.Awaited = .end) {
    self.store = store
    self.context = context
    self.isQuiet = isQuiet
    self.awaited = awaited
  }

  /// Follows `ids` until all are as wanted or removed. Returns their last documents, in order; `known` are those of them
  /// that were seen before.
  func run(
    _ ids: [UniqueID], known: [TaskDocument] = [], until isEnough: @Sendable (TaskDocument) -> Bool
  ) async throws -> [TaskDocument] {
    let held = Lock<Set<UniqueID>>([])
    await tellOfInterrupt(ids, held)
    var display = makeDisplay()
    var tasks = NamedTasks(ids, known: known)
    var told: Set<String> = []
    let start = ContinuousClock.now
    while true {
      let removed = tasks.update(try await store.tasks(ids))
      display.show(tasks.documents)
      if !isQuiet { for task in removed { display.say("\(task.title) was removed.") } }
      if tasks.areAll(isEnough) { return tasks.documents }
      var obstacles: [String] = []
      // Where an effect is awaited, a command is on its way that may let them go on.
      if awaited == .end {
        let holds = try await holds(tasks.existing)
        held.withLock { $0 = Set(holds.map(\.task)) }
        obstacles = holds.map(\.sentence)
      }
      if ContinuousClock.now - start > Self.patience { obstacles += try await obstacle(tasks).map { [$0] } ?? [] }
      for obstacle in obstacles where told.insert(obstacle).inserted { display.say(obstacle) }
      try await Task.sleep(for: Self.interval)
    }
  }

  /// What of the followed can only go on once somebody does something about it, and what that is.
  private func holds(_ tasks: [TaskDocument]) async throws -> [(task: UniqueID, sentence: String)] {
    let predecessors = Set(tasks.filter { $0.state == .blocked }.flatMap(\.spec.after))
    let states = predecessors.isEmpty ? [:] : try await store.states(of: Array(predecessors))
    return tasks.compactMap { task in WaitReason.hold(of: task, states: states).map { (task.spec.id, $0) } }
  }

  /// Why nothing of what is followed moves; nil where something does.
  private func obstacle(_ tasks: NamedTasks) async throws -> String? {
    if tasks.unseen > 0 { return Self.unseen }
    let waiting = [TaskState.queued, .blocked]
    guard tasks.existing.allSatisfy({ waiting.contains($0.state) }), let first = tasks.existing.first
    else { return nil }
    return try await WaitReason.of([first], in: store)[first.spec.id].map { "\(first.title) waits \($0)." }
  }

  private static let unseen = """
    Kafka has the command, but no worker has taken it yet: see 'reelhaul workers'. After a worker has joined, ended or died, \
    the commands are assigned again. This takes seconds, and up to about 15 seconds after a death.
    """

  /// An interrupt ends this process, and not the tasks.
  private func tellOfInterrupt(_ ids: [UniqueID], _ held: Lock<Set<UniqueID>>) async {
    let stop = StopSignal()
    stop.onStop { [context, awaited] in
      if context.terminal.isInteractive { context.error.line() }
      context.note(WatchEnd.sentence(ids, held: held.withLock { $0 }, awaited: awaited))
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
