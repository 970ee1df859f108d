import TaskCore

/// What the waiting tasks need, and how old the events are that wait to be published.
package struct Backlog: Hashable, Sendable {
  /// The kinds of the tasks that could run now.
  package var kinds: Set<TaskKind>
  /// The storages that these tasks need.
  package var storages: Set<String>
  /// The age of the oldest event that is not published yet; zero if every event is published.
  package var eventAge: Duration

  package init(kinds: Set<TaskKind> = [], storages: Set<String> = [], eventAge: Duration = .zero) {
    self.kinds = kinds
    self.storages = storages
    self.eventAge = eventAge
  }
}
