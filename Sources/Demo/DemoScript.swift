import TaskCore

/// What the demo does to its tasks, decided from how far they are. Pure: documents in, actions out, each once.
struct DemoScript {
  enum Action: Hashable {
    case pause(UniqueID)
    case resume(UniqueID)
    case cancel(UniqueID)
    /// SIGKILL to the worker that runs the task.
    case kill(worker: UniqueID, task: UniqueID)
  }

  /// The part of a film that is there before something happens to it.
  private static let threshold = 0.2
  /// How many looks a paused task stays paused; it must not move meanwhile.
  private static let pausedLooks = 12

  private let roles: [UniqueID: DemoFilm.Role]
  private var done: Set<Action> = []
  private var pausedFor = 0
  private var pausedAt: Int64?
  /// What went against the script, in words.
  private(set) var complaints: [String] = []

  init(_ roles: [UniqueID: DemoFilm.Role]) {
    self.roles = roles
  }

  mutating func look(at tasks: [TaskDocument]) -> [Action] {
    // A killed worker's share of the commands waits until the group misses it: the others come first.
    let areSteered = tasks.allSatisfy(isSteered)
    return tasks.flatMap { task in
      switch roles[task.spec.id] ?? .plain {
      case .plain: [] as [Action]
      case .killed: areSteered ? kill(task) : []
      case .canceled: isUnderWay(task) ? once(.cancel(task.spec.id)) : []
      case .paused: pauseAndResume(task)
      }
    }
  }

  private mutating func kill(_ task: TaskDocument) -> [Action] {
    guard isUnderWay(task), let worker = task.worker, !done.contains(where: { $0.isKill }) else { return [] }
    return once(.kill(worker: worker, task: task.spec.id))
  }

  private mutating func pauseAndResume(_ task: TaskDocument) -> [Action] {
    if task.state == .paused {
      if let pausedAt, pausedAt != task.bytesDone, pausedFor < Self.pausedLooks {
        complaints.append("\(task.title) moved while it was paused")
      }
      pausedAt = task.bytesDone
      pausedFor += 1
      return pausedFor > Self.pausedLooks ? once(.resume(task.spec.id)) : []
    }
    return isUnderWay(task) ? once(.pause(task.spec.id)) : []
  }

  /// The pause or the cancel of the task has had its effect, or comes too late.
  private func isSteered(_ task: TaskDocument) -> Bool {
    switch roles[task.spec.id] ?? .plain {
    case .plain, .killed: true
    case .canceled: task.state.isFinal
    case .paused: task.state == .paused || pausedAt != nil || task.state.isFinal
    }
  }

  private func isUnderWay(_ task: TaskDocument) -> Bool {
    guard task.state == .running, let total = task.bytesTotal, total > 0 else { return false }
    return Double(task.bytesDone) / Double(total) >= Self.threshold
  }

  private mutating func once(_ action: Action) -> [Action] {
    done.insert(action).inserted ? [action] : []
  }

  /// What the script wanted to happen and did not.
  var missing: [String] {
    var missing: [String] = []
    if !done.contains(where: \.isKill) { missing.append("no worker was killed in mid-transfer") }
    if !done.contains(where: { if case .resume = $0 { true } else { false } }) {
      missing.append("no task was paused and resumed")
    }
    if !done.contains(where: { if case .cancel = $0 { true } else { false } }) {
      missing.append("no task was canceled")
    }
    return missing
  }
}

extension DemoScript.Action {
  fileprivate var isKill: Bool { if case .kill = self { true } else { false } }
}
