/// What waits, and for what.
package struct Backlog: Hashable, Sendable {
  /// The storage roots that tasks need which could run now.
  package var storages: Set<String>
  /// How long ago the oldest event was written that is not published yet; zero where there is none.
  package var eventAge: Duration

  package init(storages: Set<String> = [], eventAge: Duration = .zero) {
    self.storages = storages
    self.eventAge = eventAge
  }
}
