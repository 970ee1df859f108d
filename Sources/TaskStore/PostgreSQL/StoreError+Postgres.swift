import ReelhaulPostgres

extension StoreError {
  init(_ error: PostgresError) {
    if error.isForeignSchema {
      self = .schema("the database's schema is not the one this program needs: \(error.message)")
    } else if error.code == .server, !error.isRetryable {
      self = .failed(error.description, isServersFault: error.isServersFault)
    } else {
      self = .unavailable(error.description)
    }
  }
}
