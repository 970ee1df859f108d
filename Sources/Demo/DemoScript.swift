import TaskCore

/// Decides from the progress of the demo's tasks what happens to them. Pure: documents in, actions out, each action
/// once.
struct DemoScript {
  enum Action: Hashable {
    case pause(UniqueID)
    case resume(UniqueID)
    case cancel(UniqueID)
    /// SIGKILL to the worker that runs the task.
    case kill(worker: UniqueID, task: UniqueID)
  }

  /// The part of a film that must be downloaded before something happens to it.
  private static let threshold = 0.2
  /// For how many looks a paused task stays paused. It must make no progress during them.
  private static let pausedLooks = 12

  private let roles: [UniqueID: DemoFilm.Role]
  private var done: Set<Action> = []
  private var pausedFor = 0
  private var pausedAt: Int64?
  /// What happened against the script, for people.
  private(set) var complaints: [String] = []

  init(_ roles: [UniqueID: DemoFilm.Role]) {
    self.roles = roles
  }

  mutating func look(at tasks: [TaskDocument]) -> [Action] {
    // The kill comes last: the commands on a killed worker's partitions wait until the group notices its death.
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
    guard isUnderWay(task), let worker = task.worker, !done.contains(where: { $0.killed == task.spec.id }) else {
      return []
    }
    return once(.kill(worker: worker, task: task.spec.id))
  }

  private mutating func pauseAndResume(_ task: TaskDocument) -> [Action] {
    if task.state == .paused {
      if let pausedAt, pausedAt != task.bytesDone, pausedFor < Self.pausedLooks {
        complaints.append("\(task.title) made progress while it was paused")
      }
      pausedAt = task.bytesDone
      pausedFor += 1
      return pausedFor > Self.pausedLooks ? once(.resume(task.spec.id)) : []
    }
    return isUnderWay(task) ? once(.pause(task.spec.id)) : []
  }

  /// Whether the pause or the cancel of the task has taken effect, or is too late.
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

  /// The parts of the script that did not happen.
  var missing: [String] {
    var missing: [String] = []
    let killed = done.compactMap(\.killed)
    if roles.contains(where: { $0.value == .killed && !killed.contains($0.key) }) {
      missing.append("no worker was killed during a transfer")
    }
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
  /// The task whose worker is killed.
  fileprivate var killed: UniqueID? { if case .kill(_, let task) = self { task } else { nil } }
}
