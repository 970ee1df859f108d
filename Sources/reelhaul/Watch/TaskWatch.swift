import CommandLineKit
import Glibc
import System
import TaskCore
import TaskStore

/// Follows tasks by reading the store a few times a second, and shows what changes.
struct TaskWatch {
  private static let interval: Duration = .milliseconds(250)
  /// After which a task that is not in the store yet is worth a word.
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
    var display = makeDisplay()
    var hasSpoken = false
    let start = ContinuousClock.now
    while true {
      var documents: [TaskDocument] = []
      for id in ids {
        if let document = try await store.task(id) { documents.append(document) }
      }
      display.show(documents)
      let missing = ids.count - documents.count
      if missingIsEffect ? missing == ids.count : missing == 0 && documents.allSatisfy(isEnough) { return documents }
      if missing > 0, !missingIsEffect, !hasSpoken, ContinuousClock.now - start > Self.patience {
        hasSpoken = true
        context.note("Kafka has the command, but no worker has taken it yet: see 'reelhaul workers'.")
      }
      try await Task.sleep(for: Self.interval)
    }
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
