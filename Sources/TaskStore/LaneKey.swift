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
    let source = Authority(of: spec.source)
    let destination = spec.destination.map(Authority.init(of:)) ?? Authority()
    priority = spec.priority
    queue = spec.queue
    kind = spec.kind
    host = source.host ?? destination.host ?? ""
    storage = destination.storage ?? source.storage ?? ""
  }

  /// The part of a URL between `//` and the path, told apart by scheme.
  private struct Authority {
    var host: String?
    var storage: String?

    init() {}

    init(of url: String) {
      let bytes = Array(url.utf8)
      guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
        return
      }
      let scheme = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
      var authority = bytes[(colon + 3)...]
      authority = authority.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
      if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[(at + 1)...] }
      if authority.first == UInt8(ascii: "[") {
        authority = authority.prefix { $0 != UInt8(ascii: "]") }.dropFirst()
      } else {
        authority = authority.prefix { $0 != UInt8(ascii: ":") }
      }
      let name = String(decoding: authority, as: UTF8.self)
      guard !name.isEmpty else { return }
      if scheme == "storage" { storage = name } else { host = name.lowercased() }
    }
  }
}
