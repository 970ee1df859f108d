import TaskCore

/// Why a running task is told to stop.
package enum StopReason: Hashable, Sendable {
  /// Somebody paused or canceled it.
  case intent(Intent)
  /// The worker shuts down and hands it back.
  case drain
  /// The watchdog saw no progress for too long.
  case stalled
  /// It took longer than its kind's policy allows.
  case timedOut
  /// The lease, or this epoch's ownership, is lost: nothing may be written for it any more.
  case abandoned
}
