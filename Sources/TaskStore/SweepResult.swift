/// How many tasks a sweep moved.
package struct SweepResult: Hashable, Sendable {
  /// Tasks taken from workers whose lease is over.
  package var expired: Int
  /// Delayed tasks that became due.
  package var due: Int

  package init(expired: Int, due: Int) {
    self.expired = expired
    self.due = due
  }
}
