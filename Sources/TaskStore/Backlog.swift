import TaskCore

/// What the waiting tasks need, and how old the events are that wait to be published.
package struct Backlog: Hashable, Sendable {
  /// The kinds of the tasks that could run now.
  package var kinds: Set<TaskKind>
  /// The storages that these tasks need.
  package var storages: Set<String>
  /// The two roots of those that need two, which one worker must have together.
  package var pairs: Set<StoragePair>
  /// How long ago the oldest event was written that is not published yet; zero where there is none.
  package var eventAge: Duration

  package init(
    kinds: Set<TaskKind> = [], storages: Set<String> = [], pairs: Set<StoragePair> = [], eventAge: Duration = .zero
  ) {
    self.kinds = kinds
    self.storages = storages
    self.pairs = pairs
    self.eventAge = eventAge
  }
}
