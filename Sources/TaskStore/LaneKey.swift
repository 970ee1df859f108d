import TaskCore

/// What makes waiting tasks alike to a claim: they have the same priority and are limited by the same buckets.
package struct LaneKey: Hashable, Sendable {
  package var priority: Int
  package var queue: String
  package var kind: TaskKind
  /// The remote host the bytes come from or go to, in lower case and without its port; empty where there is none.
  package var host: String
  /// The storage that must be mounted; empty where any worker will do.
  package var storage: String

  package init(_ spec: TaskSpec) {
    priority = spec.priority
    queue = spec.queue
    kind = spec.kind
    (host, storage) = ("", "")
    // Where both ends have one, it is the source's host that is asked, and the destination's storage that is needed.
    for url in [spec.destination, spec.source].compactMap({ $0 }).compactMap({ try? ResourceURL($0) }) {
      switch url {
      case .web(let url): host = url.host.last == "." ? String(url.host.dropLast()) : url.host
      case .storage(let url): if storage.isEmpty { storage = url.root }
      }
    }
  }
}
