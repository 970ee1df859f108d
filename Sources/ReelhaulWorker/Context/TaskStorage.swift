import ReelhaulSystem
import ReelhaulTasks
import TaskCore
import TransferEngine

/// The storages of this worker, for a clean-up: see ``TaskHandler/cleanUp(_:after:storage:)``.
public struct TaskStorage: Sendable {
  let roots: StorageRoots?

  /// Deletes what lies at `url`, a `storage://` URL: a file, a symbolic link itself, or a directory with all it holds.
  /// Nothing there is a success. When it returns, the deletion is durable.
  ///
  /// Throws ``TaskError``, such as one that waits where this worker lacks the root, and `CancellationError`.
  public func remove(_ url: String) async throws {
    let place = try TaskTransfer.place(url)
    guard let root = roots?[place.root] else { throw TaskTransfer.withoutStorage }
    let watch = Watch()
    do {
      try await withTaskCancellationHandler {
        let isGone = try await root.delete { try Deletion(place, on: $0, isRecursive: true, observer: watch).run() }
        guard isGone else { throw CancellationError() }
      } onCancel: {
        watch.stop()
      }
    } catch let error as StorageError {
      throw TaskError(error.failure)
    }
  }

  private final class Watch: Deletion.Observer {
    private let isStopped = Flag()

    var goesOn: Bool { !isStopped.isSet }

    func stop() { isStopped.set() }

    func deleted(_ count: Deletion.Count) {}
  }
}
