import ReelhaulPostgres

extension PostgresError {
  /// A deadlock or a serialization failure: nothing was applied, and the same call may well succeed at once.
  var isLostRace: Bool {
    sqlState == "40P01" || sqlState == "40001"
  }
}

extension StoreError {
  init(_ error: PostgresError) {
    switch error.sqlState {
    case "3F000", "42P01", "42883", "42703":
      self = .schema("the database's schema is not the one this program needs: \(error.message)")
    case let state? where error.code == .server && !error.isRetryable:
      self = .failed(sqlState: state, message: error.description)
    default:
      self = .unavailable(error.description)
    }
  }
}
