import CReelhaulPostgres

/// How to reach a database and how to treat its sessions.
///
/// The URL is libpq's (`postgres://user:password@host:port/database?sslmode=…`, or `host=… dbname=…`), with one
/// addition: `prepared_statements=false`, for PgBouncer in transaction mode.
package struct PostgresConfiguration: Sendable {
  /// The oldest major version of a server that will do.
  package static let oldestServer = 15

  /// libpq's keywords and their values, as the URL gives them.
  private(set) var parameters: [String: String]
  /// `false`: every statement is parsed anew, so that consecutive transactions may run on different server sessions.
  package var preparedStatements = true
  /// Shown in `pg_stat_activity`.
  package var applicationName = "reelhaul"
  /// For one attempt to connect, name resolution included. From `connect_timeout` where the URL has it.
  package var connectTimeout: Duration = .seconds(10)
  /// How long the server's machine may leave unacknowledged what was sent; then the connection is lost. The URL's
  /// `tcp_user_timeout` comes before it.
  package var acknowledgement: Duration = .seconds(30)
  /// How long a caller waits for a connection of the pool.
  package var acquireTimeout: Duration = .seconds(10)
  /// How long a statement may take, unless its call says otherwise; then it is canceled.
  package var statementTimeout: Duration = .seconds(60)
  /// How long to ask whether a COMMIT was applied after its connection was lost: longer than a server's restart.
  package var commitResolution: Duration = .seconds(30)

  package init(url: String) throws(PostgresError) {
    let (url, prepared) = try Self.takePreparedStatements(from: url)
    if let prepared { preparedStatements = prepared }
    parameters = try Self.parse(url)
    if let seconds = parameters["connect_timeout"].flatMap({ Int($0) }), seconds > 0 {
      connectTimeout = .seconds(seconds)
    }
  }

  /// What a person needs to know which server is meant, without the password: `127.0.0.1:5432/reelhaul`.
  package var target: String {
    let host = parameters["host"] ?? parameters["hostaddr"] ?? "local socket"
    return "\(host):\(parameters["port"] ?? "5432")/\(parameters["dbname"] ?? parameters["user"] ?? "")"
  }

  /// libpq refuses words it does not know, so ours is cut out first.
  private static func takePreparedStatements(from url: String) throws(PostgresError) -> (String, Bool?) {
    guard let question = url.firstIndex(of: "?"), url.contains("://") else { return (url, nil) }
    var prepared: Bool?
    var kept: [Substring] = []
    for pair in url[url.index(after: question)...].split(separator: "&") {
      switch pair {
      case "prepared_statements=false": prepared = false
      case "prepared_statements=true": prepared = true
      case _ where pair.hasPrefix("prepared_statements="):
        throw PostgresError(.configuration, "prepared_statements must be true or false")
      default: kept.append(pair)
      }
    }
    let base = url[..<question]
    return (kept.isEmpty ? String(base) : base + "?" + kept.joined(separator: "&"), prepared)
  }

  private static func parse(_ url: String) throws(PostgresError) -> [String: String] {
    // libpq's own complaint would show the password.
    let isURL = ["postgres://", "postgresql://"].contains { url.hasPrefix($0) }
    guard isURL || url.contains("=") && !url.contains("://") else {
      throw PostgresError(.configuration, "PostgreSQL's URL must be postgres://USER:PASSWORD@HOST:PORT/DATABASE")
    }
    var message: UnsafeMutablePointer<CChar>?
    guard let options = PQconninfoParse(url, &message) else {
      defer { PQfreemem(message) }
      let reason = message.map { String(cString: $0).trimmingNewlines } ?? "out of memory"
      throw PostgresError(.configuration, "the PostgreSQL URL cannot be read: \(reason)")
    }
    defer { PQconninfoFree(options) }
    return Self.values(of: options)
  }

  /// What the environment and the defaults give where the URL is silent (`PGHOST`, `PGPORT` …).
  static func defaults() -> [String: String] {
    guard let options = PQconndefaults() else { return [:] }
    defer { PQconninfoFree(options) }
    return values(of: options)
  }

  private static func values(of options: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
    var values: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return values
  }
}

extension String {
  /// libpq adds lines of guesses to what it says.
  var firstLine: String { String(prefix { !$0.isNewline }) }

  var trimmingNewlines: String {
    var text = self[...]
    while let last = text.last, last.isNewline || last == " " { text.removeLast() }
    return String(text)
  }
}
