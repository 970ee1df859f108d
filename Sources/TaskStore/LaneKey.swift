import TaskCore

/// What makes waiting tasks alike to a claim: they have the same priority and are limited by the same buckets.
package struct LaneKey: Hashable, Sendable {
  package var priority: Int
  package var queue: String
  package var kind: TaskKind
  /// The remote host the bytes come from or go to, in lower case and without its port; empty where there is none.
  package var host: String
  /// The storage that must be mounted, the destination's where there are two; empty where any worker will do.
  package var storage: String
  /// The source's storage, which must be mounted by the same worker; empty where it is the same or there is none.
  package var sourceStorage: String

  package init(_ spec: TaskSpec) {
    priority = spec.priority
    queue = spec.queue
    kind = spec.kind
    (host, storage, sourceStorage) = ("", "", "")
    // Where both ends have a host, it is the source's that is asked.
    for url in [spec.destination, spec.source].compactMap({ $0 }).compactMap({ try? ResourceURL($0) }) {
      switch url {
      case .web(let url): host = url.host.last == "." ? String(url.host.dropLast()) : url.host
      case .storage(let url) where storage.isEmpty: storage = url.root
      case .storage(let url) where url.root != storage: sourceStorage = url.root
      case .storage: break
      }
    }
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
