/// Why a call of the store failed.
package enum StoreError: Error, Hashable, Sendable {
  /// The database cannot be reached now; the call may be repeated.
  case unavailable(String)
  /// The database refused the statement: a bug or a wrong schema. `sqlState` has five characters.
  case failed(sqlState: String, message: String)
  /// The schema is not the one this program needs.
  case schema(String)
}
