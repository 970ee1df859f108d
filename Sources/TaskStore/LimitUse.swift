/// The parts of a fleet whose running tasks can be limited.
package enum LimitScope: String, Sendable, CaseIterable {
  /// The whole fleet; its name is empty.
  case total
  case kind
  case queue
  case host
  /// A storage, by its name.
  case storage
}

/// One limit, how much of it is used, and for a queue its share.
package struct LimitUse: Sendable, Hashable {
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
  /// Former names of a kind, which count here, in order.
  package var formerNames: [String]

  package init(
    scope: LimitScope, name: String, running: Int = 0, limit: Int? = nil, weight: Double? = nil,
    declared: Int? = nil, formerNames: [String] = []
  ) {
    self.scope = scope
    self.name = name
    self.running = running
    self.limit = limit
    self.weight = weight
    self.declared = declared
    self.formerNames = formerNames
  }

  /// How many more tasks can start; nil for any number.
  package var room: Int? { limit.map { max(0, $0 - running) } }

  /// Whether it is the limit of what has this name, now or formerly.
  package func isOf(_ scope: LimitScope, _ name: String) -> Bool {
    self.scope == scope && (self.name == name || formerNames.contains(name))
  }

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
