import ReelhaulSystem
import TaskCore

/// What a token allows; each scope includes the ones before it.
package enum TokenScope: String, Sendable, CaseIterable, Comparable {
  /// To look.
  case read
  /// To submit tasks, and to control them.
  case write
  /// To change the fleet: limits, queues, workers, dead letters.
  case admin

  package static func < (a: TokenScope, b: TokenScope) -> Bool { a.rank < b.rank }

  private var rank: Int {
    switch self {
    case .read: 0
    case .write: 1
    case .admin: 2
    }
  }
}

/// A token of the HTTP API, as the store knows it. The token itself is not stored, only its SHA-256.
package struct APIToken: Hashable, Sendable {
  /// The most code points of a name, which is also an actor's name in commands.
  package static let longestName = 100
  package static let mostQueues = 100
  /// How many sessions of one token are kept.
  package static let mostSessions = 100

  package var id: UniqueID
  /// Unique among the tokens that are not sessions.
  package var name: String
  package var scope: TokenScope
  /// The queues whose tasks it reaches; nil for all.
  package var queues: Set<String>?
  package var createdAt: Timestamp
  package var expiresAt: Timestamp?
  package var lastUsedAt: Timestamp?
  /// The token with which a browser was signed in that holds this one; nil if it is no session. It ends with that one.
  package var parent: UniqueID?

  package var isSession: Bool { parent != nil }

  package init(
    id: UniqueID, name: String, scope: TokenScope, queues: Set<String>? = nil, createdAt: Timestamp,
    expiresAt: Timestamp? = nil, lastUsedAt: Timestamp? = nil, parent: UniqueID? = nil
  ) {
    self.id = id
    self.name = name
    self.scope = scope
    self.queues = queues
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.lastUsedAt = lastUsedAt
    self.parent = parent
  }
}

/// A token to be stored.
package struct NewToken: Sendable {
  package var name: String
  package var scope: TokenScope
  package var queues: Set<String>?
  /// How long it is valid; nil for ever.
  package var lifetime: Duration?
  /// The SHA-256 of its secret: 32 bytes.
  package var hash: [UInt8]

  package init(name: String, scope: TokenScope, queues: Set<String>? = nil, lifetime: Duration? = nil, hash: [UInt8]) {
    self.name = name
    self.scope = scope
    self.queues = queues
    self.lifetime = lifetime
    self.hash = hash
  }
}

/// Keeps the tokens of the HTTP API. Time is the store's own clock.
package protocol TokenStore: Sendable {
  /// Returns nil if there is a token with this name that still holds.
  func createToken(_ token: NewToken) async throws -> APIToken?
  /// Stores a session of the token with the id `parent`, which has its name, scope and queues and ends with it. Of each
  /// token, the newest ``APIToken/mostSessions`` sessions are kept. Returns nil if the token does not hold any more.
  func createSession(of parent: UniqueID, hash: [UInt8], lifetime: Duration) async throws -> APIToken?
  /// The token whose secret has this SHA-256; nil if there is none, and if it was revoked or has expired.
  func token(hash: [UInt8]) async throws -> APIToken?
  /// All tokens that hold and are not sessions, by name.
  func tokens() async throws -> [APIToken]
  /// Ends the token with this name or id, and its sessions. Returns nil if none holds.
  func revokeToken(_ nameOrID: String) async throws -> APIToken?
  /// Ends the session with this id.
  func endSession(_ id: UniqueID) async throws
}
