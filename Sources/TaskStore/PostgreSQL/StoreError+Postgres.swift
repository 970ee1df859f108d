import ReelhaulPostgres

extension StoreError {
  init(_ error: PostgresError) {
    if error.isForeignSchema {
      self = .schema("the database's schema does not fit this program: \(error.message)")
    } else if error.code == .server, !error.isRetryable {
      self = .failed(error.description, cause: error.cause, isServersFault: error.isServersFault)
    } else {
      self = .unavailable(error.description, cause: error.cause)
    }
  }
}
