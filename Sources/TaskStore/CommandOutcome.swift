import TaskCore

/// What became of a command.
package enum CommandOutcome: Hashable, Sendable {
  case applied
  /// Applied before; nothing changed.
  case duplicate
  /// A running task is to be paused, canceled or moved: its worker learns it by its next renewal, sooner by a signal.
  case intended(worker: UniqueID)
  /// Cannot be applied; `reason` goes with it to the dead letters. `code` is `unknown_task` or `illegal_transition`, …
  case refused(code: String, reason: String)
}
