import CReelhaulPostgres
import Glibc

/// How to connect to a database, and how to treat its sessions.
///
/// The URL is libpq's (`postgres://user:password@host:port/database?sslmode=…`, or `host=… dbname=…`), with one
/// addition: `prepared_statements=false`, for PgBouncer in transaction mode.
package struct PostgresConfiguration: Sendable {
  /// The oldest supported major version of the server.
  package static let oldestServer = 15

  /// libpq's keywords and their values, from the URL.
  private(set) var parameters: [String: String]
  /// If false, every statement is parsed each time, so that consecutive transactions may run on different server
  /// sessions.
  package var preparedStatements = true
  /// Shown in `pg_stat_activity`.
  package var applicationName = "reelhaul"
  /// How long one address may take to answer an attempt to connect. `connect_timeout` of the URL overrides it.
  package var connectTimeout: Duration = .seconds(10)
  /// How long the server's machine may leave sent bytes unacknowledged before the connection counts as lost.
  /// `tcp_user_timeout` of the URL overrides it.
  package var acknowledgement: Duration = .seconds(30)
  /// How long a caller waits for a connection from the pool.
  package var acquireTimeout: Duration = .seconds(10)
  /// How long a statement may take, unless its call says otherwise. Then it is canceled.
  package var statementTimeout: Duration = .seconds(60)
  /// How long to ask whether a COMMIT was applied after its connection was lost. It is longer than a restart of the
  /// server.
  package var commitResolution: Duration = .seconds(30)

  package init(url: String) throws(PostgresError) {
    let (url, prepared) = try Self.takePreparedStatements(from: url)
    if let prepared { preparedStatements = prepared }
    parameters = try Self.parse(url)
    if let seconds = parameters["connect_timeout"].flatMap({ Int($0) }), seconds > 0 {
      connectTimeout = .seconds(seconds)
    }
  }

  /// How long an address of `count` may take, when others come after it: the caller waits for one of those, too.
  func connectTimeout(of count: Int) -> Duration {
    parameters["connect_timeout"] == nil ? min(connectTimeout, acquireTimeout / count) : connectTimeout
  }

  /// Names the servers for people, without the password: `127.0.0.1:5432/reelhaul`.
  package var target: String { Self.target(Self.completed(parameters)) }

  static func target(_ parameters: [String: String]) -> String {
    let list = { (keyword: String) in
      (parameters[keyword] ?? "").split(separator: ",", omittingEmptySubsequences: false)
    }
    let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
    let servers = (0..<max(hosts.count, addresses.count)).map { index in
      let names = [hosts, addresses].compactMap { index < $0.count ? $0[index] : nil }
      let port = index < ports.count ? ports[index] : ports[0]
      return "\(names.first { !$0.isEmpty } ?? "local socket"):\(port.isEmpty ? "5432" : port)"
    }
    return "\(servers.joined(separator: ","))/\(parameters["dbname"] ?? parameters["user"] ?? "")"
  }

  /// libpq refuses keywords that it does not know, so our own is removed first.
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

  /// No error repeats a part of the URL: where a password is not escaped, any part may belong to it.
  private static func parse(_ url: String) throws(PostgresError) -> [String: String] {
    let isURL = ["postgres://", "postgresql://"].contains { url.hasPrefix($0) }
    guard isURL || url.contains("=") && !url.contains("://") else {
      throw PostgresError(.configuration, "PostgreSQL's URL must be postgres://USER:PASSWORD@HOST:PORT/DATABASE")
    }
    if isURL, let mistake = Self.mistake(in: url) { throw mistake }
    guard let options = PQconninfoParse(url, nil) else {
      throw isURL
        ? unreadable("it has an unknown parameter, or is incomplete")
        : unreadable("it has an unknown keyword, or a value with a space that is not in quotes: password='…'")
    }
    defer { PQconninfoFree(options) }
    let values = Self.values(of: options)
    // The name of a local socket may begin with @, and its path may contain one.
    let hosts = values["host", default: ""].split(separator: ",").filter { !$0.hasPrefix("/") }
    if hosts.contains(where: { $0.dropFirst().contains("@") }) { throw unreadable("its host contains @") }
    if values["port", default: ""].contains(where: { !($0.isASCII && $0.isNumber || $0 == ",") }) {
      throw unreadable("its port is not a number")
    }
    return values
  }

  /// What a character that is not escaped makes of a URL that libpq may still take.
  private static func mistake(in url: String) -> PostgresError? {
    let escapes = url.split(separator: "%", omittingEmptySubsequences: false).dropFirst()
    if escapes.contains(where: { $0.prefix(2).count(where: \.isHexDigit) < 2 }) {
      return unreadable("a % is not followed by two hexadecimal digits")
    }
    // libpq ends the password at the first @, and takes a URL with a slash before this @ to have no password.
    let parts = url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "?" }
      .split(separator: "@", omittingEmptySubsequences: false)
    if parts.count > 2 || parts.count == 2 && parts[0].contains("/") { return unreadable("it has an @ too many") }
    return nil
  }

  private static func unreadable(_ mistake: String) -> PostgresError {
    let advice = "In a URL, escape %, @, / and : in the password: %25, %40, %2F, %3A"
    return PostgresError(.configuration, "the PostgreSQL URL cannot be read: \(mistake). \(advice)")
  }

  /// `given` with what libpq adds for the keywords that it lacks: from the file of a service, from the environment (`PGHOST`,
  /// `PGPORT` …), and its defaults. It reads files.
  static func completed(_ given: [String: String]) -> [String: String] {
    // Only a connection reads the file of a service. This one ends at its wrong keyword, before anything is sent.
    let session = try? Session(parameters: given.merging(["gssencmode": "only to complete"]) { $1 })
    let given = given.filter { !$0.value.isEmpty }  // as libpq does
    guard var values = session?.parameters, values.contains(where: { !$0.value.isEmpty }) else { return given }
    values.merge(given) { $1 }
    values["gssencmode"] = given["gssencmode"]
    // All that its file says is there. Without it, libpq would read that of the environment.
    if getenv("PGSERVICE") == nil { values["service"] = nil }
    // A host that is given counts more than another one's address in the environment.
    if given["host"] != nil, given["hostaddr"] == nil, let address = getenv("PGHOSTADDR"),
      values["hostaddr"] == String(cString: address)
    {
      values["hostaddr"] = nil
    }
    return values
  }

  static func values(of options: UnsafeMutablePointer<PQconninfoOption>) -> [String: String] {
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
  /// The first line only, because libpq adds lines of guesses to its messages.
  var firstLine: String { String(prefix { !$0.isNewline }) }

  var trimmingNewlines: String {
    var text = self[...]
    while let last = text.last, last.isNewline || last == " " { text.removeLast() }
    return String(text)
  }
}
