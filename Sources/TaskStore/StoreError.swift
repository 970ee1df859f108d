import ReelhaulPostgres

/// Why a call of the store failed. A `cause` is PostgreSQL's SQLSTATE, or the error's code.
package enum StoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The database cannot be reached, or cannot serve because of what it lacks, now. The call may be repeated.
  case unavailable(String, cause: String = "unavailable")
  /// The database refused the statement. The cause is a bug or a wrong schema. If `isServersFault` is true, the cause
  /// is on the server: a missing right, a timeout, or a disk that does not work.
  case failed(String, cause: String = "failed", isServersFault: Bool = false)
  /// The schema does not fit this program. It is probably older, and a migration may help.
  case schema(String)
  /// The schema is newer than this program, or belongs to another program. A migration by this program cannot help.
  case otherSchema(String)
  case otherFleet(OtherFleet)

  /// Whether one of the `count` items of the call may have caused the error. If the server is at fault and the call had
  /// only one item, the item is not the cause: the call may be repeated, as if the database could not be reached.
  package func blamesItems(of count: Int) -> Bool {
    switch self {
    case .unavailable, .schema, .otherSchema, .otherFleet: false
    case .failed(_, _, let isServersFault): count > 1 || !isServersFault
    }
  }

  /// Whether the store belongs to another program or another fleet. Waiting does not help then.
  package var isFinal: Bool {
    switch self {
    case .unavailable, .failed, .schema: false
    case .otherSchema, .otherFleet: true
    }
  }

  /// Whether the schema is the cause. The text then says which schema the program needs, and no address.
  package var isAboutSchema: Bool {
    switch self {
    case .schema, .otherSchema: true
    case .unavailable, .failed, .otherFleet: false
    }
  }

  /// What stays the same when the error happens again.
  package var cause: String {
    switch self {
    case .unavailable(_, let cause), .failed(_, let cause, _): cause
    case .schema: "schema"
    case .otherSchema: "otherSchema"
    case .otherFleet: "otherFleet"
    }
  }

  /// What the database lacks that answers, but cannot serve now.
  package var lack: PostgresError.Lack? {
    if case .unavailable(_, let cause) = self { PostgresError.Lack(sqlState: cause) } else { nil }
  }

  /// Whether the database answers, but can store nothing now.
  package var storesNothing: Bool {
    switch lack {
    case .writes, .resources: true
    default: false
    }
  }

  package var description: String {
    switch self {
    case .unavailable(let message, _), .failed(let message, _, _), .schema(let message), .otherSchema(let message):
      message
    case .otherFleet(let fleets): "\(fleets)"
    }
  }
}

/// The store belongs to another fleet.
package struct OtherFleet: Hashable, Sendable, CustomStringConvertible {
  /// The topic prefix of the fleet that owns the store.
  package var recorded: String
  package var configured: String

  package init(recorded: String, configured: String) {
    self.recorded = recorded
    self.configured = configured
  }

  package var description: String {
    """
    this database belongs to the fleet with the topic prefix "\(recorded)", but "\(configured)" is configured: \
    its events would be published to the wrong topics
    """
  }
}
