import TaskCore

/// The tasks that a watch without names follows: unfinished ones, and those that have ended meanwhile, in the order in
/// which they appeared.
struct FollowedTasks {
  private let limit: Int
  private(set) var documents: [TaskDocument] = []

  /// Follows up to `limit` tasks at once.
  init(limit: Int) {
    self.limit = limit
  }

  /// `listed` are the unfinished tasks now, running ones first. Followed tasks that are not among them, and are not
  /// known to have ended, are looked up. A task that no longer exists is not followed any more.
  mutating func update(
    listed: [TaskDocument], lookUp: ([UniqueID]) async throws -> [UniqueID: TaskDocument]
  ) async throws {
    var current = Dictionary(listed.map { ($0.spec.id, $0) }) { $1 }
    let vanished = documents.filter { !$0.state.isFinal && current[$0.spec.id] == nil }.map(\.spec.id)
    if !vanished.isEmpty { current.merge(try await lookUp(vanished)) { $1 } }
    var known = Set(documents.map(\.spec.id))
    documents = documents.compactMap { current[$0.spec.id] ?? ($0.state.isFinal ? $0 : nil) }
    for task in listed where known.insert(task.spec.id).inserted { add(task) }
  }

  /// From now on, follows only unfinished tasks.
  mutating func dropEnded() {
    documents.removeAll(where: \.state.isFinal)
  }

  /// If there is no room, the task that ended first gives way. A running task also replaces a waiting one.
  private mutating func add(_ task: TaskDocument) {
    if documents.count == limit {
      let waiting = task.state.isOwned ? documents.lastIndex { !$0.state.isOwned } : nil
      guard let place = documents.firstIndex(where: \.state.isFinal) ?? waiting else { return }
      documents.remove(at: place)
    }
    documents.append(task)
  }
}
