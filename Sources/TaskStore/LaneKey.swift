import TaskCore

/// The key of a lane. Waiting tasks with the same key are equal for a claim: they have the same priority, and the same
/// buckets limit them.
package struct LaneKey: Hashable, Sendable {
  package var priority: Int
  package var queue: String
  package var kind: TaskKind
  /// The remote host from which the bytes come or to which they go, in lower case and without its port; empty if there
  /// is none.
  package var host: String
  /// The storage that the worker must have mounted. If there are two, it is the destination's. Empty if any worker can
  /// run the task.
  package var storage: String
  /// The source's storage, which the same worker must have mounted; empty if it is the same storage or there is none.
  package var sourceStorage: String

  package init(_ spec: TaskSpec) {
    priority = spec.priority
    queue = spec.queue
    kind = spec.kind
    (host, storage, sourceStorage) = ("", "", "")
    // If both ends have a host, the source's host counts, because it comes last in the loop.
    for url in [spec.destination, spec.source].compactMap({ $0 }).compactMap({ try? ResourceURL($0) }) {
      switch url {
      case .web(let url): host = url.host.last == "." ? String(url.host.dropLast()) : url.host
      case .storage(let url) where storage.isEmpty: storage = url.root
      case .storage(let url) where url.root != storage: sourceStorage = url.root
      case .storage: break
      }
    }
  }

  /// All storages that a worker needs for these tasks.
  package var storages: [String] { [storage, sourceStorage].filter { !$0.isEmpty } }
}
