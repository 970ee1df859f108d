import CPostgres

/// A message of the server that is not an error.
package struct PostgresNotice: Sendable {
  /// `NOTICE`, `WARNING`, `INFO`, `LOG`, `DEBUG`; `FATAL` where the server ends an idle session.
  package var severity: String
  package var sqlState: String?
  package var message: String

  init(_ result: OpaquePointer?) {
    severity = rh_pg_error_severity(result).map { String(cString: $0) } ?? "NOTICE"
    sqlState = rh_pg_error_sqlstate(result).map { String(cString: $0) }
    message = rh_pg_error_message(result).map { String(cString: $0) } ?? ""
  }
}
