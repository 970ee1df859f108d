import CommandLineKit
import ReelhaulSystem
import TaskAdvice
import TaskCore
import TaskStore

/// Finds tasks by what the command line calls them, and a task that may just have been submitted and may not be in the
/// store yet.
struct TaskLookup {
  /// The greatest age of a missing task's id at which the fleet gets time to store the task.
  private static let fresh: Int64 = 60_000
  private static let patience: Duration = .seconds(5)

  /// The most tasks that an error about an ambiguous ending lists.
  private static let candidates = 8

  private let store: any TaskReader

  init(_ store: any TaskReader) {
    self.store = store
  }

  /// The ids of the named tasks, in order. Throws if an ending is that of no task's id, or of several.
  func ids(_ names: [TaskID]) async throws -> [UniqueID] {
    var ids: [UniqueID] = []
    for name in names {
      switch name {
      case .whole(let id): ids.append(id)
      case .ending(let ending): ids.append(try await id(ending))
      }
    }
    return ids
  }

  private func id(_ ending: IDEnding) async throws -> UniqueID {
    let found = try await store.ids(ending: ending, limit: Self.candidates + 1)
    guard let first = found.first else {
      throw CommandFailure(
        .notFound, "there is no task whose id ends in \(ending)", hint: "'reelhaul list' shows the tasks.")
    }
    guard found.count > 1 else { return first }
    let tasks = try await store.tasks(found)
    let lines = found.prefix(Self.candidates).map { id in
      let task = tasks[id]
      let words = [task?.spec.kind.rawValue, task?.status, task.map { URLRedaction.redact($0.spec.source) }]
      return DisplayWidth.printable("  \(id) \(words.compactMap { $0 }.joined(separator: " "))")
    }
    let more = found.count > Self.candidates ? ["  …"] : []
    throw CommandFailure(
      .usage, "the ids of several tasks end in \(ending)",
      hint: (["Give more digits of the one that is meant:"] + lines + more).joined(separator: "\n"))
  }

  /// The task. Throws ``ExitCode/notFound`` if it does not exist: at once if the caller knows what is not stored yet.
  func get(_ id: UniqueID, atOnce: Bool = false) async throws -> TaskDocument {
    let deadline = BootInstant.now + (!atOnce && isFresh(id) ? Self.patience : .zero)
    while true {
      if let document = try await store.task(id) { return document }
      guard BootInstant.now < deadline else {
        throw CommandFailure(.notFound, "there is no task \(id)", hint: "'reelhaul list' shows the tasks.")
      }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  /// A version 7 id contains the time at which it was made.
  private func isFresh(_ id: UniqueID) -> Bool {
    guard id.high >> 12 & 0xF == 7 else { return false }
    return abs(Clocks.realtimeMicroseconds() / 1000 - Int64(id.high >> 16)) < Self.fresh
  }
}
