import TaskCore

/// An unusual event of a task: one that is no part of a life that runs through.
package struct HistoryEntry: Hashable, Sendable {
  /// The kind of the task's event, or ``lost``.
  package var type: String
  package var sequence: Int
  package var at: Timestamp
  /// The attempt and the epoch that were the last ones then.
  package var attempt: Int
  package var epoch: Int
  /// Of an event that ends a run: when the run began, and the boot of its worker.
  package var startedAt: Timestamp?
  package var worker: UniqueID?
  package var actor: String?
  package var code: TaskFailure.Code?
  package var message: String?

  /// The task was taken from a worker whose lease was over.
  package static let lost = "lost"
  /// How many a task keeps: its first ones, and its last ones.
  package static let limit = 200

  package init(
    type: String, sequence: Int, at: Timestamp, attempt: Int, epoch: Int, startedAt: Timestamp? = nil,
    worker: UniqueID? = nil, actor: String? = nil, code: TaskFailure.Code? = nil, message: String? = nil
  ) {
    self.type = type
    self.sequence = sequence
    self.at = at
    self.attempt = attempt
    self.epoch = epoch
    self.startedAt = startedAt
    self.worker = worker
    self.actor = actor
    self.code = code
    self.message = message
  }
}
