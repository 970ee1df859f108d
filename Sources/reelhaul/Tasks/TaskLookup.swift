import ReelhaulSystem
import TaskCore
import TaskStore

/// Finds a task that may just have been submitted and may not be in the store yet.
struct TaskLookup {
  /// The greatest age of a missing task's id at which the fleet gets time to store the task.
  private static let fresh: Int64 = 60_000
  private static let patience: Duration = .seconds(5)

  private let store: any TaskReader

  init(_ store: any TaskReader) {
    self.store = store
  }

  private func find(_ id: UniqueID) async throws -> TaskDocument? {
    let deadline = BootInstant.now + (isFresh(id) ? Self.patience : .zero)
    while true {
      if let document = try await store.task(id) { return document }
      guard BootInstant.now < deadline else { return nil }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  /// The task. Throws ``ExitCode/notFound`` if it does not exist.
  func get(_ id: UniqueID) async throws -> TaskDocument {
    guard let task = try await find(id) else {
      throw CommandFailure(.notFound, "there is no task \(id)", hint: "'reelhaul list' shows the tasks.")
    }
    return task
  }

  /// A version 7 id contains the time at which it was made.
  private func isFresh(_ id: UniqueID) -> Bool {
    guard id.high >> 12 & 0xF == 7 else { return false }
    return abs(Clocks.realtimeMicroseconds() / 1000 - Int64(id.high >> 16)) < Self.fresh
  }
}
