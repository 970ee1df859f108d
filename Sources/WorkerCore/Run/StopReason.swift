import TaskCore

/// Why a run must stop.
package enum StopReason: Hashable, Sendable {
  /// The task was paused or canceled.
  case intent(Intent)
  /// The worker shuts down and hands the task back.
  case drain
  /// More tasks of its host stand in line than the host will soon take: the task is handed back.
  case crowded
  /// The watchdog saw no progress for too long.
  case stalled
  /// The run took longer than the policy of its kind allows.
  case timedOut
  /// The lease, or this epoch's ownership of the task, is lost: nothing more may be written for the run.
  case abandoned
}
