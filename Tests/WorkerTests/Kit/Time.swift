import ReelhaulSystem
import WorkerCore

/// Milliseconds on the clock of a test, which begins at zero.
func at(_ milliseconds: Int) -> BootInstant {
  BootInstant(nanoseconds: Int64(milliseconds) * 1_000_000)
}
