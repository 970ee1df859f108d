import Postgres

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
      self = .schema("\(error.message); run `reelhaul migrate`")
    case let state? where error.code == .server && !error.isRetryable:
      self = .failed(sqlState: state, message: error.description)
    default:
      self = .unavailable(error.description)
    }
  }
}
