import TaskCore

/// The key of a lane. Waiting tasks with the same key are equal for a claim: they have the same priority, and the same
/// buckets limit them.
package struct LaneKey: Hashable, Sendable {
  package var priority: Int
  package var queue: String
  package var kind: TaskKind
  /// The remote host from which the bytes come or to which they go, in lower case and without its port; empty if there
  /// is none. For `s3://`, whose host only the workers' credentials know, `BUCKET.s3`.
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
    for text in [spec.destination, spec.source].compactMap({ $0 }) {
      if let root = StorageURL.root(of: text) {
        if storage.isEmpty { storage = root } else if root != storage { sourceStorage = root }
        continue
      }
      switch try? ResourceURL(text) {
      case .web(let url): host = Self.host(of: url)
      case .tus(let url): host = Self.host(of: url.endpoint)
      case .s3(let url): host = "\(url.bucket.lowercased()).s3"
      case .storage, nil: break
      }
    }
  }

  /// A name with a last dot is the same host.
  static func host(of url: WebURL) -> String {
    url.host.last == "." ? String(url.host.dropLast()) : url.host
  }

  /// Both storages, where there are two.
  package var pair: StoragePair? {
    sourceStorage.isEmpty ? nil : StoragePair(source: sourceStorage, destination: storage)
  }

  /// All storages that a worker needs for it.
  package var storages: [String] { [storage, sourceStorage].filter { !$0.isEmpty } }
}

/// The storages of a task that reads one and writes another.
package struct StoragePair: Hashable, Sendable {
  package var source: String
  package var destination: String

  package init(source: String, destination: String) {
    self.source = source
    self.destination = destination
  }

  /// What keeps workers from it, in words; nil if one of them has both. `usable` are the roots of each worker.
  package func lack(of usable: [Set<String>]) -> String? {
    guard !usable.contains(where: { $0.isSuperset(of: [source, destination]) }) else { return nil }
    let missing = [source, destination].filter { root in !usable.contains { $0.contains(root) } }
    return switch missing.count {
    case 0: "no live worker has both"
    case 1: "no live worker has \(missing[0])"
    default: "no live worker has either"
    }
  }
}
