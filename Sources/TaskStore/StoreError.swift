/// Why a call of the store failed.
package enum StoreError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The database cannot be reached now; the call may be repeated.
  case unavailable(String)
  /// The database refused the statement: a bug or a wrong schema; or, where `isServersFault`, it had no right, no time or no
  /// working disk for it.
  case failed(String, isServersFault: Bool = false)
  /// The schema is not the one this program needs, as far as can be told an older one.
  case schema(String)
  /// The schema is a newer one, or another program's: no migration of this one mends that.
  case otherSchema(String)
  case otherFleet(OtherFleet)

  /// Whether one of the `count` items that were to be written may be at fault. Where one alone fails for want of a right,
  /// of time or of a working disk, it is not: the call may be repeated, as where the database cannot be reached.
  package func blamesItems(of count: Int) -> Bool {
    switch self {
    case .unavailable, .schema, .otherSchema, .otherFleet: false
    case .failed(_, let isServersFault): count > 1 || !isServersFault
    }
  }

  /// Whether the store is not this program's or not this fleet's: no waiting mends that.
  package var isFinal: Bool {
    switch self {
    case .unavailable, .failed, .schema: false
    case .otherSchema, .otherFleet: true
    }
  }

  package var description: String {
    switch self {
    case .unavailable(let message), .failed(let message, _), .schema(let message), .otherSchema(let message): message
    case .otherFleet(let fleets): "\(fleets)"
    }
  }
}

/// A fleet met the store of another one.
package struct OtherFleet: Hashable, Sendable, CustomStringConvertible {
  /// The topic prefix of the fleet whose store it is.
  package var recorded: String
  package var configured: String

  package init(recorded: String, configured: String) {
    self.recorded = recorded
    self.configured = configured
  }

  package var description: String {
    """
    this database is that of the fleet with the topic prefix "\(recorded)", and "\(configured)" is configured: \
    events would be published under the wrong one
    """
  }
}
