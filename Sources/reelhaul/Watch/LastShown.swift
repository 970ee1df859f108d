import ReelhaulSystem
import TaskCore

/// What was shown last of each task. A task that is not listed for a minute is forgotten.
struct LastShown<Value: Sendable>: Sendable {
  private static var patience: Duration { .seconds(60) }

  private var entries: [UniqueID: (value: Value, listed: BootInstant)] = [:]
  private var cleared = BootInstant.now

  /// `show` gets what was shown last of each task, nil of a new one, and returns what is shown now.
  mutating func update(
    _ tasks: [TaskDocument], now: BootInstant = .now, _ show: (Value?, TaskDocument, BootInstant) -> Value
  ) {
    for task in tasks {
      entries[task.spec.id] = (show(entries[task.spec.id]?.value, task, now), now)
    }
    guard now - cleared >= Self.patience else { return }
    entries = entries.filter { now - $0.value.listed < Self.patience }
    cleared = now
  }
}
