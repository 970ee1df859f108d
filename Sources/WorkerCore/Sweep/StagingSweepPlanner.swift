import TaskCore
import TransferEngine

/// Decides which of a volume's staging files no task will need again.
package struct StagingSweepPlanner: Sendable {
  package struct Entry: Hashable, Sendable {
    package var name: StagingName
    /// Seconds since the file was modified; negative where the file server's clock is ahead.
    package var age: Int

    package init(name: StagingName, age: Int) {
      self.name = name
      self.age = age
    }
  }

  /// Seconds for which even an ended task's file is left alone: the run may still be cleaning up.
  package static let quiet = 60
  /// Seconds for which the file of a failed task waits for a `retry`, which then begins anew; and the file of an
  /// unknown task for its own fleet, which may share the root.
  package static let kept = 7 * 86_400

  private let candidates: [Entry]

  package init(_ entries: [Entry]) {
    candidates = entries.filter { $0.age >= Self.quiet }
  }

  /// The tasks whose states decide; empty where nothing can be discarded whatever they are.
  package var tasks: Set<UniqueID> {
    Set(candidates.lazy.map(\.name.task))
  }

  /// The files to discard. `states` holds those of all ``tasks`` that the store knows.
  package func discards(_ states: [UniqueID: TaskState]) -> [StagingName] {
    candidates.filter { entry in
      switch states[entry.name.task] {
      case .succeeded, .canceled: true
      case .failed, nil: entry.age >= Self.kept
      // It goes on with its bytes.
      case .blocked, .queued, .running, .publishing, .paused: false
      }
    }.map(\.name)
  }
}
