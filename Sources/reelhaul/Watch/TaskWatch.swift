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

  private let store: any TaskStore
  private let context: Context
  private let isQuiet: Bool

  init(_ store: any TaskStore, _ context: Context, isQuiet: Bool = false) {
    self.store = store
    self.context = context
    self.isQuiet = isQuiet
  }

  /// Follows `ids` until all are as wanted; their last documents, in order, without those that are gone.
  func run(
    _ ids: [UUID], until isEnough: @Sendable (TaskDocument) -> Bool, missingIsEffect: Bool = false
  ) async throws -> [TaskDocument] {
    await tellOfInterrupt(ids)
    var display = makeDisplay()
    var told: String?
    let start = ContinuousClock.now
    while true {
      var documents: [TaskDocument] = []
      for id in ids {
        if let document = try await store.task(id) { documents.append(document) }
      }
      display.show(documents)
      let missing = ids.count - documents.count
      if missingIsEffect ? missing == ids.count : missing == 0 && documents.allSatisfy(isEnough) { return documents }
      if !missingIsEffect, ContinuousClock.now - start > Self.patience,
        let reason = try await obstacle(documents, missing), reason != told
      {
        told = reason
        display.say(reason)
      }
      try await Task.sleep(for: Self.interval)
    }
  }

  /// Why nothing of what is followed moves; nil where something does.
  private func obstacle(_ documents: [TaskDocument], _ missing: Int) async throws -> String? {
    if missing > 0 { return "Kafka has the command, but no worker has taken it yet: see 'reelhaul workers'." }
    guard documents.allSatisfy({ $0.state == .queued }), let first = documents.first else { return nil }
    let reason = WaitReason.of(first, workers: try await store.workers(), limits: try await store.limits())
    return reason.map { "\(first.title) waits \($0)." }
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
    var followed: [UUID] = []
    while true {
      var known = Set(followed)
      for state in [TaskState.running, .publishing, .queued, .paused, .blocked] {
        let tasks = try await store.tasks(TaskFilter(state: state, limit: 100))
        followed += tasks.map(\.spec.id).filter { known.insert($0).inserted }.reversed()
      }
      var documents: [TaskDocument] = []
      for id in followed {
        if let document = try await store.task(id) { documents.append(document) }
      }
      display.show(documents)
      // What has ended was shown ended once.
      let ended = Set(documents.filter(\.state.isFinal).map(\.spec.id))
      if context.terminal.isInteractive {
        followed = documents.map(\.spec.id).suffix(200)
      } else {
        followed.removeAll { ended.contains($0) }
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
