import TaskCore

/// The parts of a fleet whose running tasks can be limited.
package enum LimitScope: String, Sendable, CaseIterable {
  /// The whole fleet; its name is empty.
  case total
  case kind
  case queue
  case host
  /// A storage, by its name.
  case storage

  /// The name as the store has it: of a host, that of tasks. The total has the empty one.
  package func checked(_ name: String) throws(InvalidLimit) -> String {
    switch self {
    case .total:
      guard name.isEmpty else { throw InvalidLimit("the total has no name, so \"\(name)\" does not belong here") }
    case .host:
      // Without a port, in lower case.
      let url = try? WebURL(name.contains(":") ? "http://[\(name)]/" : "http://\(name)/")
      guard let url, url.host == name.lowercased() else {
        throw InvalidLimit(
          "a host is a name or an address such as example.org, without scheme and port, not \"\(name)\"")
      }
      return LaneKey.host(of: url)
    case .storage:
      guard StorageURL.isRootName(name) else {
        throw InvalidLimit("a storage is the NAME in storage://NAME/PATH, not \"\(name)\"")
      }
    case .kind, .queue:
      guard TaskSpec.isName(name, limit: 100) else {
        throw InvalidLimit(
          "a \(rawValue)'s name has 1 to 100 letters, digits, \".\", \"_\" or \"-\", unlike \"\(name)\"")
      }
    }
    return name
  }
}

/// A limit that cannot be set, with the reason in a sentence.
package struct InvalidLimit: Error, Hashable, Sendable {
  package var message: String

  package init(_ message: String) { self.message = message }
}

/// How many tasks of a host a worker can make use of at once.
package struct HostLimit: Hashable, Sendable {
  package var most: Int
  /// The host refuses the requests of others; else they stand in line for a connection.
  package var isRefusing: Bool

  package init(_ most: Int, isRefusing: Bool = false) {
    self.most = most
    self.isRefusing = isRefusing
  }
}

/// A server of a host has served tasks, and does so no more.
package struct HostOutage: Hashable, Sendable {
  /// With its port; of S3 `BUCKET.s3`.
  package var server: String
  package var since: Timestamp
  /// When a task asks again.
  package var probeAt: Timestamp
  /// Why the last task failed.
  package var code: TaskFailure.Code
  package var message: String

  package init(server: String, since: Timestamp, probeAt: Timestamp, code: TaskFailure.Code, message: String) {
    self.server = server
    self.since = since
    self.probeAt = probeAt
    self.code = code
    self.message = message
  }
}

/// One limit, how much of it is used, and for a queue its share.
package struct LimitUse: Sendable, Hashable {
  package static let limits = 0...1_000_000
  package static let weights = 0.001...1000.0

  package var scope: LimitScope
  /// Empty for ``LimitScope/total``.
  package var name: String
  /// How many tasks run now.
  package var running: Int
  /// Nil for no limit.
  package var limit: Int?
  /// A queue's share among queues with tasks of equal priority; nil for other scopes.
  package var weight: Double?
  /// The limit that a handler declares for its kind. It is valid unless an operator has set another.
  package var declared: Int?
  /// How many tasks of a host the workers can make use of at once, where more stood in line. It is valid unless an operator
  /// has set another limit.
  package var learned: Int?
  /// Why tasks of a host fail now, or some of them; nil if it serves.
  package var outage: HostOutage?
  /// How many may run because of that: one, if it is time that one asks, or none; nil if the host has another server.
  package var outageLimit: Int?
  /// Former names of a kind, which count here, in order.
  package var formerNames: [String]

  package init(
    scope: LimitScope, name: String, running: Int = 0, limit: Int? = nil, weight: Double? = nil,
    declared: Int? = nil, learned: Int? = nil, outage: HostOutage? = nil, outageLimit: Int? = nil,
    formerNames: [String] = []
  ) {
    self.scope = scope
    self.name = name
    self.running = running
    self.limit = limit
    self.weight = weight
    self.declared = declared
    self.learned = learned
    self.outage = outage
    self.outageLimit = outageLimit
    self.formerNames = formerNames
  }

  /// How many more tasks can start; nil for any number.
  package var room: Int? { limit.map { max(0, $0 - running) } }

  /// Whether it is the limit of what has this name, now or formerly.
  package func isOf(_ scope: LimitScope, _ name: String) -> Bool {
    self.scope == scope && (self.name == name || formerNames.contains(name))
  }

  /// No task of the host runs but one that asks whether it serves again.
  package var isOut: Bool { outage != nil && outageLimit != nil }

  /// Nothing more can start.
  package var isReached: Bool { room == 0 }
}

extension [LimitUse] {
  /// By scope, from the whole to the parts, then by name.
  package func inOrder() -> [LimitUse] {
    let ranks = Dictionary(uniqueKeysWithValues: LimitScope.allCases.enumerated().map { ($1, $0) })
    return sorted { (ranks[$0.scope] ?? 0, $0.name) < (ranks[$1.scope] ?? 0, $1.name) }
  }
}
