import TaskCore

/// Reads, for many requests at once, what a task's document does not tell.
package protocol DetailReader: Sendable {
  /// Those of these commands, none of them a submit, that a worker has applied or refused.
  func outcomes(of commands: [UniqueID]) async throws -> [UniqueID: AppliedCommand]
  /// Those of these tasks that still run although a command has asked to pause or cancel them, and which of both.
  func stopping(_ tasks: [UniqueID]) async throws -> [UniqueID: ControlAction]
}

/// What became of a command.
package enum AppliedCommand: Hashable, Sendable {
  /// It was applied; a running task may still be stopping.
  case applied
  case refused(code: String, reason: String)
}
