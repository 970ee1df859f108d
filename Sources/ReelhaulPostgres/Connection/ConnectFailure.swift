import CReelhaulPostgres

/// Interprets libpq's message about a failed attempt to connect.
enum ConnectFailure {
  /// The message is `…: FATAL:  28P01: password authentication failed…` and a `LOCATION:` line, in libpq's verbose
  /// form. The severity may be in any language, but the five characters between two colons are always the SQLSTATE.
  static func error(from message: String) -> PostgresError {
    let lines = message.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("LOCATION:") }
    let text = lines.map { $0.drop { $0.isWhitespace } }.joined(separator: "; ")
    var pieces = text.split(separator: ":", omittingEmptySubsequences: false)
    guard let index = pieces.firstIndex(where: isSQLState) else { return PostgresError(.connection, text) }
    let state = String(pieces.remove(at: index).drop { $0 == " " })
    return PostgresError(.connection, pieces.joined(separator: ":"), sqlState: state)
  }

  private static func isSQLState(_ piece: Substring) -> Bool {
    guard piece.first == " " else { return false }
    let word = piece.drop { $0 == " " }
    return word.utf8.count == 5 && word.first?.isNumber == true
      && word.allSatisfy { $0.isASCII && ($0.isNumber || $0.isUppercase) }
  }
}

extension PostgresError {
  /// From a result that is an error.
  init(result: OpaquePointer) {
    let text = { (field: UnsafePointer<CChar>?) in field.map { String(cString: $0) } }
    let state = text(rh_pg_error_sqlstate(result))
    let message = text(rh_pg_error_message(result)) ?? text(PQresultErrorMessage(result))?.firstLine ?? ""
    // Without a SQLSTATE the message is libpq's own, and is about the connection.
    self.init(state == nil ? .connection : .server, message, sqlState: state)
    detail = text(rh_pg_error_detail(result))
    hint = text(rh_pg_error_hint(result))
    constraint = text(rh_pg_error_constraint(result))
    let severity = text(rh_pg_error_severity(result))
    endsSession = severity == "FATAL" || severity == "PANIC"
  }
}
