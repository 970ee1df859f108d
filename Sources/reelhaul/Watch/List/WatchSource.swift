import TaskCore
import TaskStore

/// Reads the tasks of a ``WatchList``.
struct WatchSource {
  /// The most tasks of each state that are listed.
  private static let most = 500
  static let limit = "There are more tasks than the newest \(most) of each state, which were looked at"
  /// In microseconds. Transactions do not end in the order of their times, which tasks have from them.
  private static let overlap: Int64 = 10_000_000

  private let store: any TaskReader
  private var followed = FollowedTasks(limit: 0)
  private var group: WatchList.Group?
  /// What ``newlyEnded()`` has seen: tasks that were created since then.
  private var seen: (since: Timestamp?, ended: Set<UniqueID>)?

  init(_ store: any TaskReader) {
    self.store = store
  }

  /// The tasks of a group, and the states in which there are more of them. Unfinished tasks that end meanwhile stay where
  /// they are.
  mutating func tasks(_ group: WatchList.Group) async throws -> (tasks: [TaskDocument], more: Set<TaskState>) {
    let states = group.states
    guard !states.isEmpty else {
      let found = try await store.tasks(TaskFilter(limit: Self.most + 1))
      self.group = group
      return (Array(found.prefix(Self.most)), found.count > Self.most ? Set(TaskState.allCases) : [])
    }
    var listed: [TaskDocument] = []
    var more: Set<TaskState> = []
    for state in states {
      let found = try await store.tasks(TaskFilter(state: TaskStatus(rawValue: state.rawValue), limit: Self.most + 1))
      if found.count > Self.most { more.insert(state) }
      listed += found.prefix(Self.most).reversed()
    }
    guard group == .unfinished else {
      self.group = group
      return (listed, more)
    }
    if self.group != group { followed = FollowedTasks(limit: states.count * Self.most) }
    self.group = group
    let store = store
    try await followed.update(listed: listed) { try await store.tasks($0) }
    return (followed.documents, more)
  }

  /// The newest tasks that have ended since the last call; none at the first. Those that end at once are never among the
  /// unfinished ones.
  mutating func newlyEnded() async throws -> [TaskDocument] {
    let newest = try await store.tasks(TaskFilter(createdAfter: seen?.since, limit: Self.most))
    let ended = newest.filter(\.state.isFinal)
    let fresh = seen.map { seen in ended.filter { !seen.ended.contains($0.spec.id) } } ?? []
    let since = newest.first.map { Timestamp(microseconds: $0.createdAt.microseconds - Self.overlap) }
    seen = (since ?? seen?.since, Set(ended.map(\.spec.id)))
    return fresh.reversed()
  }

  /// From now on, follows only unfinished tasks.
  mutating func dropEnded() { followed.dropEnded() }
}
