import TaskCore
import TransferEngine

/// Decides which of a volume's staging files and scratch directories no task will need again.
package struct StagingSweepPlanner: Sendable {
  package struct Entry<Name: Hashable & Sendable>: Hashable, Sendable {
    package var name: Name
    /// Seconds since the file was modified, or an entry of the directory was made or removed; negative if the file
    /// server's clock is ahead.
    package var age: Int

    package init(name: Name, age: Int) {
      self.name = name
      self.age = age
    }
  }

  /// The seconds for which even an ended task's file is kept, because its run may still be cleaning up.
  package static let quiet = 60
  /// The seconds for which the file of a failed task is kept for a `retry`, which afterwards starts from zero. The
  /// file of an unknown task is kept as long, because it may belong to another fleet that shares the root.
  package static let kept = 7 * 86_400

  private let candidates: [Entry<StagingName>]
  private let scratches: [Entry<ScratchName>]

  package init(_ entries: [Entry<StagingName>], scratches: [Entry<ScratchName>] = []) {
    candidates = entries.filter { $0.age >= Self.quiet }
    self.scratches = scratches.filter { $0.age >= Self.quiet }
  }

  /// The tasks whose states decide. Empty if no file can be discarded in any case.
  package var tasks: Set<UniqueID> {
    Set(candidates.lazy.map(\.name.task)).union(scratches.lazy.map(\.name.task))
  }

  /// The ids whose files are kept as long as they follow from the id of a task that is not over: transfers of handlers
  /// have ids of their own.
  package func derived(_ states: [UniqueID: TaskState]) -> [UniqueID] {
    let old = candidates.lazy.filter { states[$0.name.task] == nil && $0.age >= Self.kept }
    return Array(Set(old.map(\.name.task)))
  }

  /// The files to discard. `states` has the states of all ``tasks`` that the store knows, `unfinished` those of the ids
  /// that follow from the id of a task that is not over.
  package func discards(_ states: [UniqueID: TaskState], unfinished: Set<UniqueID> = []) -> [StagingName] {
    candidates.filter { entry in
      switch states[entry.name.task] {
      case .succeeded, .canceled: true
      case .failed: entry.age >= Self.kept
      case nil: entry.age >= Self.kept && !unfinished.contains(entry.name.task)
      // The task will continue with its bytes.
      case .blocked, .queued, .running, .publishing, .paused: false
      }
    }.map(\.name)
  }

  /// The scratch directories to discard. A run never uses the directory of an earlier run.
  package func discardedScratches(_ states: [UniqueID: TaskState]) -> [ScratchName] {
    scratches.filter { entry in
      switch states[entry.name.task] {
      case .running, .publishing: false
      case nil: entry.age >= Self.kept
      case .blocked, .queued, .paused, .succeeded, .failed, .canceled: true
      }
    }.map(\.name)
  }
}
