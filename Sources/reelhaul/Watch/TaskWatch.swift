import CommandLineKit
import Glibc
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore
import WorkerOptions

/// Follows tasks by reading the store a few times a second, and shows changes.
struct TaskWatch {
  private static let interval: Duration = .milliseconds(250)
  /// After this time a remark says why a task has not begun.
  private static let patience: Duration = .seconds(10)

  private let store: any TaskReader & FleetReader
  private let context: Context
  private let isQuiet: Bool

  init(_ store: any TaskReader & FleetReader, _ context: Context, isQuiet: Bool = false) {
    self.store = store
    self.context = context
    self.isQuiet = isQuiet
  }

  /// Follows `ids` until all meet the condition or are removed. `known` are documents that were seen before. Throws
  /// ``ExitCode/refused`` if the id of one that was not is that of a removed task.
  func run(
    _ ids: [UniqueID], known: [TaskDocument] = [], until isEnough: @Sendable (TaskDocument) -> Bool
  ) async throws -> NamedTasks {
    let held = Lock<Set<UniqueID>>([])
    let sentence: @Sendable () -> String = { WatchEnd.sentence(ids, held: held.withLock { $0 }, awaited: .end) }
    await StopSignal.telling(context, sentence)
    var questions = PatientQuestions(sentence)
    var display = makeDisplay()
    var tasks = NamedTasks(ids, known: known)
    var told: Set<String> = []
    let start = BootInstant.now
    while true {
      let isDone = try await questions.ask(
        { display.say($0) },
        {
          let removed = tasks.update(try await store.tasks(ids))
          display.show(tasks.documents)
          if !isQuiet { for task in removed { display.say("\(task.title) was removed.") } }
          if tasks.areAll(isEnough) { return true }
          if let id = try await store.removed(among: tasks.unseen).keys.min() { throw Self.wasRemoved(id) }
          let holds = try await holds(tasks.existing)
          held.withLock { $0 = Set(holds.map(\.task)) }
          var obstacles = holds.map(\.sentence)
          if BootInstant.now - start > Self.patience { obstacles += try await obstacle(tasks).map { [$0] } ?? [] }
          for obstacle in obstacles where told.insert(obstacle).inserted { display.say(obstacle) }
          return false
        })
      if isDone { return tasks }
      try await Task.sleep(for: Self.interval)
    }
  }

  /// The followed tasks that continue only if somebody acts, each with a sentence about it.
  private func holds(_ tasks: [TaskDocument]) async throws -> [(task: UniqueID, sentence: String)] {
    let predecessors = Set(tasks.filter { $0.state == .blocked }.flatMap(\.spec.after))
    let states = predecessors.isEmpty ? [:] : try await store.states(ofPredecessors: Array(predecessors))
    return tasks.compactMap { task in WaitReason.hold(of: task, states: states).map { (task.spec.id, $0) } }
  }

  /// Why none of the followed tasks moves; nil if one does.
  private func obstacle(_ tasks: NamedTasks) async throws -> String? {
    if !tasks.unseen.isEmpty { return Self.unseen }
    let waiting = [TaskState.queued, .blocked]
    guard tasks.existing.allSatisfy({ waiting.contains($0.state) }), let first = tasks.existing.first
    else { return nil }
    return try await WaitReason.of([first], in: store)[first.spec.id].map { "\(first.title) waits \($0)." }
  }

  static let unseen = """
    Kafka has the command, but no worker has taken it yet: see 'reelhaul workers'. After a worker has joined, ended or died, \
    the commands are assigned again. This takes seconds, and up to about 15 seconds after a death.
    """

  private static func wasRemoved(_ id: UniqueID) -> CommandFailure {
    CommandFailure(
      .refused, "the task \(id) was removed: a submit with its id changes nothing",
      hint: "Use another id; without --id a new task gets its own.")
  }

  /// Follows the tasks of a list until the process is interrupted.
  func runForever(_ list: WatchList, _ source: WatchSource) async throws -> ExitCode {
    var (display, source, questions, isLimitTold) = (makeDisplay(), source, PatientQuestions(), false)
    while true {
      // Ended tasks stay on a terminal. Elsewhere they are shown once, also new ones that end between two looks.
      let isInteractive = context.terminal.isInteractive && !context.wantsJSON
      let ended =
        isInteractive || list.group != .unfinished
        ? [] : try await questions.ask({ display.say($0) }, { try await source.newlyEnded() })
      let (tasks, more) = try await questions.ask({ display.say($0) }, { try await source.tasks(list.group) })
      display.show((ended + tasks).filter(list.matches), more: more)
      if !isInteractive {
        source.dropEnded()
        if !more.isEmpty, !isLimitTold {
          isLimitTold = true
          display.say("\(WatchSource.limit): GET /v1/events tells every change.")
        }
      }
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
